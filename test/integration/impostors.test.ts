import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { UNCACHED } from '../support/background-reader.js';
import { datasetServer } from '../support/dataset-server.js';
import { packagesNamed } from '../support/datasets.js';
import { isCreation, isFlip } from '../support/engine-proxy.js';
import { expectProblem } from '../support/expect-problem.js';
import { expectSearch } from '../support/expect-search.js';
import { servedIndex } from '../support/served-index.js';
import { useProxiedService } from '../support/proxied-service.js';
import { logLines, startService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** How long Elasticsearch rejects a request, in milliseconds: longer than the pause between two attempts. */
const REJECTED_MS = 1500;

/** Longer than the pause after which a cold start checks again whether there is a snapshot, in milliseconds. */
const COLD_START_CHECKS_MS = 750;

describe('A proxy that responds in place of Elasticsearch', function () {
  this.timeout(60_000);
  const packages = packagesNamed(['alpha', 'beta']);
  const suite = useProxiedService(() => packages, UNCACHED);

  /** The status in `/health`, after another look at the alias. */
  async function health(): Promise<unknown> {
    const { service } = suite;
    await service.refresh();
    return (await service.get('/health')).body.status;
  }

  const ELASTICSEARCH = { 'X-Elastic-Product': 'Elasticsearch' };

  for (const [what, status, type, body, headers = {}] of [
    ['404 with a page', 404, 'text/html', '<html>'],
    [
      '404 like a missing alias',
      404,
      'application/json',
      '{"error":{"type":"index_not_found_exception"},"status":404}',
    ],
    ['an empty object', 200, 'application/json', '{}'],
    ['the headers of Elasticsearch, with an empty object', 200, 'application/json', '{}', ELASTICSEARCH],
  ] as [string, number, string, string, object?][]) {
    it(`causes 503 without a rebuild while the snapshot is kept: ${what}`, async () => {
      const { service, proxy } = suite;
      const before = await service.snapshot();
      const stop = proxy.impersonate((_request, response) => {
        response.writeHead(status, { 'Content-Type': type, Location: '/', ...headers }).end(body);
      });
      try {
        expect(await health()).to.equal('unavailable');
        for (const path of ['/search?q=al', '/browse', '/packages/alpha']) {
          expectProblem(await service.get(path), 503, 'search_unavailable');
        }
        // Time for a wrong rebuild to begin.
        await pause(COLD_START_CHECKS_MS);
        expect(service.isRebuilding()).to.equal(false);
      } finally {
        stop();
      }
      expect(await health()).to.equal('ok');
      await expectSearch(service, 'al', ['alpha']);
      expect(await service.snapshot()).to.equal(before);
      expect(Object.values(service.outcomes())).to.deep.equal([0, 0, 0, 0]);
    });
  }

  for (const [what, status, matches] of [
    ['is too busy to create an index', 429, isCreation],
    ['has no master at the flip', 503, isFlip],
  ] as const) {
    it(`or an Elasticsearch that ${what} delays a rebuild, which succeeds`, async () => {
      const { service, proxy } = suite;
      let rejected = 0;
      const stop = proxy.impersonate((_request, response) => {
        rejected++;
        response
          .setHeader('X-Elastic-Product', 'Elasticsearch')
          .setHeader('Content-Type', 'application/json');
        response.writeHead(status).end(`{"error":{"type":"rejected_exception"},"status":${status}}`);
      }, matches);
      const before = await service.indices();
      const rebuilt = service.rebuild('&force=true');
      await waitFor(() => rejected > 0, 'a rejection');
      setTimeout(stop, REJECTED_MS);
      expect((await rebuilt).status).to.equal(202);
      expect(service.failure()).to.equal(undefined);
      expect(before).not.to.include(await servedIndex(service));
    });
  }
});

describe('An Elasticsearch of another version', function () {
  this.timeout(60_000);

  const linesAbout = (text: string) => logLines.filter(({ msg }) => String(msg).startsWith(text));

  it('is not assumed while Elasticsearch or a proxy responds with an error', async () => {
    const before = linesAbout('ELASTICSEARCH_URL');
    let checks = 0;
    const stub = await datasetServer(({ url }, response) => {
      if (url === '/') checks++;
      response.writeHead(503, { 'X-Elastic-Product': 'Elasticsearch', 'Content-Type': 'application/json' });
      response.end('{"error":{"type":"cluster_block_exception"},"status":503}');
    });
    const service = await startService({ ELASTICSEARCH_URL: new URL(stub.url).origin });
    // Two attempts, and the next check after five seconds.
    await waitFor(() => checks > 2, 'another check');
    await service.stop();
    await stub.close();
    expect(linesAbout('ELASTICSEARCH_URL')).to.deep.equal(before);
  });

  for (const number of ['8.19.0', '9.3.4']) {
    it(`is named in one line of the log, with the version that is needed: ${number}`, async () => {
      const stub = await datasetServer((request, response) => {
        // Earlier versions reject the media type of later clients.
        const isRejected = request.headers.accept?.includes('compatible-with=9') === true;
        response
          .writeHead(isRejected ? 400 : 200, {
            'X-Elastic-Product': 'Elasticsearch',
            'Content-Type': 'application/json',
          })
          .end(JSON.stringify(isRejected ? { error: {}, status: 400 } : { version: { number } }));
      });
      const service = await startService({ ELASTICSEARCH_URL: new URL(stub.url).origin });
      const line = `ELASTICSEARCH_URL: needs Elasticsearch 9.4 or newer 9.x, found ${number}`;
      const lines = () => linesAbout(line);
      await waitFor(() => lines().length > 0, 'the line');
      await service.refresh();
      expect(lines()).to.have.length(1);
      expect((await service.get('/search?q=al')).status).to.equal(503);
      await service.stop();
      await stub.close();
    });
  }
});
