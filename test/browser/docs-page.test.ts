import { expect } from 'chai';
import { expectAccessible, screenshot, useBrowser } from './browser.js';
import { packagesNamed } from '../support/datasets.js';
import { keepSecret } from '../support/secret-scanner.js';
import { BYPASS_SECRET, useService } from '../support/service.js';

describe('The API documentation page', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['redis', 'redis-server', 'valkey']));
  const browser = useBrowser();
  const open = async (options = {}) => {
    const page = await browser.open(`${suite.service.url}/docs`, options);
    await page.locator('#operations[aria-busy=false]').waitFor();
    return page;
  };

  it('describes every endpoint of the OpenAPI document', async () => {
    const page = await open();
    const { paths } = (await suite.service.get('/openapi.json')).body as { paths: Record<string, object> };
    expect(await page.getByRole('heading', { level: 2 }).allTextContents()).to.deep.equal(
      Object.keys(paths).map((path) => `GET ${path}`),
    );
    await expectAccessible(page);
    await screenshot(page, 'docs');
    for (const answers of await page.getByText('Responses', { exact: true }).all()) await answers.click();
    const search = page.getByRole('region', { name: 'GET /search' });
    await search.getByText('Too many requests').first().waitFor();
    await expectAccessible(page);
  });

  it('sends requests, and shows their responses', async () => {
    const page = await open();
    const search = page.getByRole('region', { name: 'GET /search' });
    await search.getByLabel(/^q/).fill('redis');
    await search.getByLabel(/^limit/).fill('1');
    await search.getByRole('button', { name: 'Try it' }).click();
    await search.getByRole('group', { name: 'Response head' }).getByText('HTTP 200').waitFor();
    await search.getByText('x-results-truncated: true').waitFor();
    const body = await search.getByRole('group', { name: 'Response body' }).textContent();
    expect(JSON.parse(body ?? '')).to.deep.equal((await suite.service.get('/search?q=redis&limit=1')).body);
    await expectAccessible(page);

    await search.getByLabel(/^q/).fill('x');
    await search.getByRole('button', { name: 'Try it' }).click();
    await search.getByText('HTTP 400').waitFor();
    await search
      .getByRole('group', { name: 'Response body' })
      .getByText('q must have 2 to 100 characters')
      .waitFor();
  });

  it('looks up exact names: one in the path, and several in the query', async () => {
    const page = await open();
    const one = page.getByRole('region', { name: 'GET /packages/{name}' });
    await one.getByLabel(/^name/).fill('redis/server');
    await one.getByRole('button', { name: 'Try it' }).click();
    await one.getByText('no package has this name').first().waitFor();
    await one.getByLabel(/^name/).fill('redis');
    await one.getByRole('button', { name: 'Try it' }).click();
    await one.getByText('HTTP 200').waitFor();
    const many = page.getByRole('region', { name: 'GET /lookup' });
    await many.getByLabel(/^name/).fill('redis valkey none');
    await many.getByRole('button', { name: 'Try it' }).click();
    await many.getByText('HTTP 200').waitFor();
    const body = await many.getByRole('group', { name: 'Response body' }).textContent();
    expect(JSON.parse(body ?? '')).to.include({ count: 2 });
  });

  it('hides secrets while they are typed', async () => {
    const page = await open();
    const bypass = page.getByRole('region', { name: 'GET /get-bypass' });
    const secret = bypass.getByLabel(/^secret/);
    expect(await secret.getAttribute('type')).to.equal('password');
    await secret.fill(BYPASS_SECRET);
    await bypass.getByRole('button', { name: 'Try it' }).click();
    const body = await bypass.getByRole('group', { name: 'Response body' }).textContent();
    keepSecret((JSON.parse(body ?? '') as { bypass_token: string }).bypass_token);
    expect(page.url()).to.equal(`${suite.service.url}/docs`);
  });

  it('fits a phone, and supports dark mode', async () => {
    const page = await open({ viewport: { width: 360, height: 740 }, isMobile: true, colorScheme: 'dark' });
    for (const answers of await page.getByText('Responses', { exact: true }).all()) await answers.click();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).to.equal(360);
    await expectAccessible(page);
    await screenshot(page, 'docs-phone-dark');
  });
});
