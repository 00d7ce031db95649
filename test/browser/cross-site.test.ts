import { expect } from 'chai';
import { useBrowser } from './browser.js';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { packagesNamed } from '../support/datasets.js';
import { BYPASS_SECRET, logLines, REBUILD_SECRET, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** More wrong secrets than an address may send. */
const ATTEMPTS = 15;

describe('A web page of another site', function () {
  this.timeout(60_000);
  const browser = useBrowser();
  const suite = useService(() => packagesNamed(['alpha', 'beta']));
  let site: DatasetServer;
  let html = '';

  before(async () => {
    site = await datasetServer((_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/html', 'Referrer-Policy': 'no-referrer' }).end(html);
    });
  });
  after(() => site.close());

  /**
   * Opens a page on `localhost`, which is a different site from 127.0.0.1.
   * @returns the statuses of its requests from the service's log, because the page cannot see them.
   */
  async function visit(body: string, requests: number): Promise<unknown[]> {
    html = `<!DOCTYPE html><link rel="icon" href="data:,">${body}`;
    const statuses = () =>
      logLines
        .filter(({ msg, path }) => msg === 'request completed' && path === '/rebuild')
        .map(({ status }) => status);
    const before = statuses().length;
    await browser.open(site.url.replace('127.0.0.1', 'localhost'));
    await waitFor(() => statuses().length === before + requests, `${requests} requests of ${body}`);
    return statuses().slice(before);
  }

  it('cannot lock its visitor out of the secret endpoints with images', async () => {
    const image = (_: unknown, i: number) => `<img src="${suite.service.url}/rebuild?secret=wrong${i}">`;
    const images = Array.from({ length: ATTEMPTS }, image).join('');
    expect(new Set(await visit(images, ATTEMPTS))).to.deep.equal(new Set([403]));
    const { status } = await suite.service.get(`/get-bypass?secret=${BYPASS_SECRET}`);
    expect(status).to.equal(200);
  });

  it('cannot start a rebuild by a script, a style sheet, a prefetch or a redirect', async () => {
    const url = `${suite.service.url}/rebuild?secret=${REBUILD_SECRET}`;
    for (const body of [
      `<script src="${url}"></script>`,
      `<link rel="prefetch" href="${url}">`,
      `<link rel="stylesheet" href="${url}">`,
      `<meta http-equiv="refresh" content="0; url=${url}">`,
    ]) {
      expect(await visit(body, 1), body).to.deep.equal([403]);
    }
  });
});
