import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import { contentWidth, expectAccessible, respond, screenshot, waitUntilIdle, useBrowser } from './browser.js';
import { packagesNamed } from '../support/datasets.js';
import { keepSecret } from '../support/secret-scanner.js';
import { BYPASS_SECRET, useService } from '../support/service.js';

/** The section of an endpoint. */
function section(page: Page, path: string): Locator {
  return page.getByRole('region', { name: `GET ${path}` });
}

/** Fills in parameters, sends the request, and waits for a response with this status. @returns its body. */
async function tryIt(endpoint: Locator, parameters: Record<string, string>, status: number) {
  for (const [name, value] of Object.entries(parameters)) {
    await endpoint.getByLabel(new RegExp(`^${name}`)).fill(value);
  }
  await endpoint.getByRole('button', { name: 'Try it' }).click();
  const head = endpoint.getByRole('group', { name: 'Response head' });
  await head.getByText(`HTTP ${status}`).waitFor();
  const body = await endpoint.getByRole('group', { name: 'Response body' }).textContent();
  return JSON.parse(body ?? '') as Record<string, string>;
}

async function openResponses(page: Page): Promise<void> {
  for (const responses of await page.getByText('Responses', { exact: true }).all()) await responses.click();
}

describe('The API documentation page', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['redis', 'redis-server', 'valkey']));
  const browser = useBrowser();
  const open = (options = {}) => browser.show(`${suite.service.url}/docs`, options);

  it('describes every endpoint of the OpenAPI document', async () => {
    const page = await open();
    const { paths } = (await suite.service.get('/openapi.json')).body as { paths: Record<string, object> };
    expect(await page.getByRole('heading', { level: 2 }).allTextContents()).to.deep.equal(
      Object.keys(paths).map((path) => `GET ${path}`),
    );
    await screenshot(page, 'docs');
    await openResponses(page);
    await section(page, '/search').getByText('Too many requests').first().waitFor();
    await expectAccessible(page);
  });

  it('sends requests with parameters in the query and in the path, shows their responses, and hides secrets', async () => {
    const page = await open();
    const search = section(page, '/search');
    const body = await tryIt(search, { q: 'redis', limit: '1' }, 200);
    await search.getByText('x-results-truncated: true').waitFor();
    expect(body).to.deep.equal((await suite.service.get('/search?q=redis&limit=1')).body);
    await expectAccessible(page);

    const short = await tryIt(search, { q: 'x' }, 400);
    expect(short['detail']).to.include('q must have 2 to 100 characters');

    const one = section(page, '/packages/{name}');
    const none = await tryIt(one, { name: 'redis/server' }, 404);
    expect(none['detail']).to.include('no package has this name');
    expect(await tryIt(one, { name: 'redis' }, 200)).to.include({ name: 'redis' });
    const many = await tryIt(section(page, '/lookup'), { name: 'redis valkey none' }, 200);
    expect(many).to.include({ count: 2 });

    // A secret is hidden while it is typed, and not sent as a parameter of the page.
    const bypass = section(page, '/get-bypass');
    expect(await bypass.getByLabel(/^secret/).getAttribute('type')).to.equal('password');
    const { bypass_token: token = '' } = await tryIt(bypass, { secret: BYPASS_SECRET }, 200);
    keepSecret(token);
    expect(page.url()).to.equal(`${suite.service.url}/docs`);
  });

  it('says that the OpenAPI document is missing if another response arrives', async () => {
    const page = await browser.open('about:blank');
    for (const body of [
      '',
      '<!doctype html>',
      'null',
      '{"info":{"description":""}}',
      '{"openapi":"3.1.0","inf',
    ]) {
      await respond(page, '**/openapi.json', { body });
      await page.goto(`${suite.service.url}/docs`);
      await page.getByText('The API description could not be loaded.').waitFor();
      await waitUntilIdle(page);
    }
  });

  it('fits a phone, and supports dark mode', async () => {
    const page = await open({ viewport: { width: 360, height: 740 }, isMobile: true, colorScheme: 'dark' });
    await openResponses(page);
    expect(await contentWidth(page)).to.equal(360);
    await expectAccessible(page);
    await screenshot(page, 'docs-phone-dark');
  });
});
