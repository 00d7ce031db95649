import { request } from 'node:http';
import { expect } from 'chai';
import {
  expectAccessible,
  focused,
  names,
  searchBox,
  waitForText,
  waitUntilIdle,
  useBrowser,
} from './browser.js';
import { datasetServer } from '../support/dataset-server.js';
import { packagesNamed } from '../support/datasets.js';
import { useService } from '../support/service.js';

const packages = packagesNamed(Array.from({ length: 1450 }, (_, i) => `package-${1000 + i}`));

describe('Visiting the page', function () {
  this.timeout(60_000);
  const suite = useService(() => packages);
  const browser = useBrowser();
  const open = (path = '/', options = {}) => browser.show(suite.service.url + path, options);

  it('shows the registry and the first packages', async () => {
    const page = await open();
    expect(await names(page)).to.deep.equal(packages.slice(0, 100).map(({ name }) => name));
    const about = page.getByRole('complementary', { name: 'Snapshot' });
    await about.getByText('1,450 packages').waitFor();
    await about.getByText(/^snapshot of \w{3} \d+, \d{4}, \d+:\d\d [AP]M$/).waitFor();
    await about.getByText('of registry.example').waitFor();
    expect(await focused(page)).to.equal('query');
    await expectAccessible(page);
  });

  it('needs less than 40 KB including a first search', async () => {
    const page = await browser.open('about:blank');
    const client = await page.context().newCDPSession(page);
    await client.send('Network.enable');
    let bytes = 0;
    client.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
    await page.goto(suite.service.url);
    await waitUntilIdle(page);
    await searchBox(page).fill('package-1');
    await waitForText(page, 'The first 50 of 1,000 packages');
    await page.waitForTimeout(1000);
    console.log(`      sent: ${bytes} bytes`);
    expect(bytes).to.be.within(5000, 40_000);
  });

  it('browses all packages page by page', async () => {
    const page = await open();
    const pager = page.getByRole('navigation', { name: 'Pages' });
    const shows = async (number: number, links: string[]) => {
      await pager.getByText(`Page ${number} of 15`).waitFor();
      await waitUntilIdle(page);
      const expected = packages.slice((number - 1) * 100, number * 100);
      expect(await names(page)).to.deep.equal(expected.map(({ name }) => name));
      expect(await pager.getByRole('link').allTextContents()).to.deep.equal(
        links.map((link) => `${link} page`),
      );
    };
    const follow = (name: string) => pager.getByRole('link', { name }).click();
    await shows(1, ['Next', 'Last']);
    await follow('Next page');
    await shows(2, ['First', 'Previous', 'Next', 'Last']);
    expect(page.url()).to.equal(`${suite.service.url}/?page=2`);
    await follow('Last page');
    await shows(15, ['First', 'Previous']);
    await page.goBack();
    await shows(2, ['First', 'Previous', 'Next', 'Last']);
    await page.goto(`${suite.service.url}/?page=9999`);
    await page.getByText('This page is past the end.').waitFor();
    await follow('Previous page');
    await shows(15, ['First', 'Previous']);
  });

  it('links to the whole list and to the feed of new packages', async () => {
    const page = await open();
    const feed = page.getByRole('link', { name: 'Feed of new packages' });
    const head = page.locator('link[rel=alternate][type="application/atom+xml"]');
    for (const one of [feed, head]) expect(await one.getAttribute('href')).to.equal('changes.atom');
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download as CSV' }).click();
    expect((await download).suggestedFilename()).to.match(/\.csv$/);
  });

  it('prints results without the controls of the screen', async () => {
    for (const path of ['/?q=package-20', '/?page=2', '/?q=package-2000']) {
      const page = await open(path);
      const shown = await names(page);
      await page.emulateMedia({ media: 'print' });
      const visible = (selector: string) => page.locator(selector).filter({ visible: true });
      expect(await visible('.packages .name').allTextContents()).to.deep.equal(shown);
      expect(await visible('form, h1, header, .pager').count()).to.equal(0);
      expect(await visible('#snapshot').count()).to.equal(1);
    }
  });

  it('works under a path that a proxy strips', async () => {
    const proxy = await datasetServer(({ url = '', headers }, response) => {
      if (url.startsWith('/below/')) {
        request(suite.service.url + url.slice('/below'.length), { headers }, (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
        }).end();
      } else response.writeHead(404).end();
    });
    try {
      const page = await browser.show(new URL('/below/', proxy.url).href);
      await page.getByText('1,450 packages').waitFor();
      await page.keyboard.type('package-2');
      await waitForText(page, '“package-2”');
      expect(new URL(page.url()).pathname).to.equal('/below/');
      await page.getByRole('link', { name: 'API' }).click();
      await page.getByRole('link', { name: 'get /stats' }).click();
      await page.getByRole('button', { name: 'Execute' }).click();
      await page.getByText('Response Status: OK (200)').waitFor();
      await page.getByRole('link', { name: 'Package search' }).click();
      await page.waitForURL('**/below/');
    } finally {
      await proxy.close();
    }
  });

  it('runs no code except its own files', async () => {
    const page = await open();
    const added = page.addScriptTag({ content: 'globalThis.intruder = true' });
    expect(await added.catch(() => 'refused')).to.equal('refused');
    expect(browser.complaints()).to.have.lengthOf(1);
  });
});
