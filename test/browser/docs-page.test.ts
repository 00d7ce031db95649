import { expect } from 'chai';
import type { Page, Request } from 'playwright-core';
import { contentWidth, expectAccessible, useBrowser } from './browser.js';
import { packagesNamed } from '../support/datasets.js';
import { keepSecret } from '../support/secret-scanner.js';
import { BYPASS_SECRET, useService } from '../support/service.js';

/** Shows an operation. The name of its link has a space before each segment of the path. */
async function choose(page: Page, path: string, method = 'get'): Promise<void> {
  await page.getByRole('link', { name: `${method}${path.replaceAll('/', ' /')}`, exact: true }).click();
  await page.getByRole('button', { name: 'Execute' }).waitFor();
}

/** Fills in parameters, sends the request, and waits for its response. @returns the shown body. */
async function execute(page: Page, parameters: Record<string, string>, status: string): Promise<unknown> {
  for (const [name, value] of Object.entries(parameters)) {
    const input = page.locator(`[data-pname="${name}"]`);
    await input.fill(value);
  }
  await page.getByRole('button', { name: 'Execute' }).click();
  await page.getByText(`Response Status: ${status}`).waitFor();
  return JSON.parse((await page.getByRole('region', { name: 'RESPONSE', exact: true }).textContent()) ?? '');
}

// The browser of a suite reports each violation of the policy as a complaint, which fails the test.
describe('The API documentation page', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['redis', 'redis-server', 'valkey']));
  const browser = useBrowser();

  /** Opens the page. Its requests are added to `sent`. */
  async function open(sent: Request[] = [], options = {}): Promise<Page> {
    const page = await browser.open('about:blank', { reducedMotion: 'reduce', ...options });
    page.on('request', (request) => sent.push(request));
    await page.goto(`${suite.service.url}/docs`);
    await page.getByRole('heading', { name: 'A first request' }).waitFor();
    return page;
  }

  it('begins with a first request', async () => {
    const page = await open();
    for (const name of ['A first request', 'Pages', 'Limits', 'Errors'])
      await page.getByRole('heading', { name, exact: true }).waitFor();
    const { tags } = (await suite.service.get('/openapi.json')).body as { tags: { name: string }[] };
    for (const { name } of tags) await page.getByText(name, { exact: true }).first().waitFor();
    const first = page.getByRole('link', { name: '/search?q=' });
    const shown = await page.locator('pre').first().textContent();
    await first.click();
    const path = page.url().slice(suite.service.url.length);
    expect(shown).to.include(`"query":"${new URLSearchParams(path.split('?')[1]).get('q')}"`);
    expect(await suite.service.get(path)).to.include({ status: 200 });
  });

  it('describes every endpoint of the OpenAPI document', async () => {
    const page = await open();
    const { paths } = (await suite.service.get('/openapi.json')).body as { paths: Record<string, object> };
    for (const [path, methods] of Object.entries(paths)) {
      await choose(page, path, Object.keys(methods)[0]);
      // Each has an example, most of them a menu of several.
      for (const status of await page.getByRole('button', { name: /^\d{3}$/ }).all()) await status.click();
    }
    await expectAccessible(page);
  });

  it('shows problems', async () => {
    const page = await open();
    await choose(page, '/packages/{name}');
    expect(await execute(page, { name: 'redis/server' }, 'Not Found (404)')).to.include({ status: 404 });
    expect(await execute(page, { name: 'redis' }, 'OK (200)')).to.include({ name: 'redis' });
  });

  it('hides secrets', async () => {
    const page = await open();
    await choose(page, '/get-bypass');
    expect(await page.locator('[data-pname="secret"]').getAttribute('type')).to.equal('password');
    const body = await execute(page, { secret: BYPASS_SECRET }, 'OK (200)');
    keepSecret((body as { bypass_token: string }).bypass_token);
    expect(page.url()).not.to.include(BYPASS_SECRET);
  });

  it('fits a phone', async () => {
    const page = await open([], { viewport: { width: 360, height: 740 }, isMobile: true });
    await page.locator('[id="get-/search"]').getByText('/search').click();
    await page.getByRole('button', { name: 'Execute' }).waitFor();
    expect(await contentWidth(page)).to.equal(360);
  });

  it('shows the response and the curl command of a request', async () => {
    const sent: Request[] = [];
    const page = await open(sent);
    await choose(page, '/search');
    const body = await execute(page, { q: 'redis', limit: '1' }, 'OK (200)');
    const path = '/search?q=redis&limit=1';
    expect(body).to.deep.equal((await suite.service.get(path)).body);
    await page.getByRole('button', { name: 'REQUEST', exact: true }).click();
    const curl = page.getByRole('region', { name: 'REQUEST', exact: true });
    expect(await curl.textContent())
      .to.include('curl')
      .and.to.include(`${suite.service.url}${path}`);
    await expectAccessible(page);
    const { url } = suite.service;
    expect(sent.map((one) => one.url()).filter((one) => !one.startsWith(`${url}/`))).to.deep.equal([]);
    const scripts = sent.filter((one) => one.resourceType() === 'script');
    expect(scripts.map((one) => one.url())).to.deep.equal([`${url}/page/docs-page.js`]);
  });
});
