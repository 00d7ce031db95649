import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import {
  expectAccessible,
  focused,
  names,
  screenshot,
  waitForText,
  waitUntilIdle,
  useBrowser,
} from './browser.js';
import { bundledPackages } from '../support/datasets.js';
import { useService } from '../support/service.js';

describe('The search page', function () {
  this.timeout(60_000);
  const packages = bundledPackages();
  const suite = useService(() => packages);
  const browser = useBrowser();
  const open = async (path = '/', options = {}) => {
    const page = await browser.open(suite.service.url + path, options);
    await waitUntilIdle(page);
    return page;
  };
  const found = async (q: string, limit: number) =>
    (await suite.service.get(`/search?${new URLSearchParams({ q, limit: String(limit) }).toString()}`)).body
      .results as { name: string; url: string; rank: number }[];

  it('shows initially what is searched, and the first page of packages', async () => {
    const page = await open();
    expect(await names(page)).to.deep.equal(packages.slice(0, 100).map(({ name }) => name));
    const about = page.getByRole('complementary', { name: 'Snapshot' });
    await about.getByText('63,666 packages').waitFor();
    await about.getByText('The service is healthy').waitFor();
    await about.getByText(/^snapshot taken (this minute|\d+ minutes? ago)$/).waitFor();
    expect(await about.getByRole('link').getAttribute('href')).to.equal('https://tracker.debian.org/');
    expect(await focused(page)).to.equal('query');
    await expectAccessible(page);
    await screenshot(page, 'empty');
  });

  it('searches while the user types, with results by rank, highlighted matches and links to the registry', async () => {
    const page = await open();
    await page.keyboard.type('redis', { delay: 60 });
    await waitForText(page, 'with “redis” in the name');
    const expected = await found('redis', 50);
    expect(await names(page)).to.deep.equal(expected.map(({ name }) => name));
    expect(await page.getByRole('heading', { level: 2 }).allTextContents()).to.deep.equal(
      ['Exactly this name', 'Names that start with it', 'Names that contain it'].map(
        (title, rank) => `${title} ${expected.filter((match) => match.rank === rank).length}`,
      ),
    );
    const links = page.locator('.packages a');
    expect(await links.evaluateAll((all) => all.map((link) => link.getAttribute('href')))).to.deep.equal(
      expected.map(({ url }) => url),
    );
    for (const mark of await page.locator('mark').allTextContents())
      expect(mark.toLowerCase()).to.equal('redis');
    expect(await page.locator('mark').count()).to.be.at.least(expected.length);
    expect(page.url()).to.equal(`${suite.service.url}/?q=redis`);
    expect(await page.title()).to.equal('redis – Package search');
    await expectAccessible(page);
    await screenshot(page, 'results');
  });

  it('shows a message if nothing is found, and if a query is too short or too long', async () => {
    const page = await open();
    await page.keyboard.type('no such name');
    await waitForText(page, 'No name contains “no such name”.');
    expect(await names(page)).to.deep.equal([]);
    await expectAccessible(page);
    await screenshot(page, 'no-result');
    await page.getByRole('searchbox').fill('x');
    await waitForText(page, 'Type at least 2 characters.');
    await page.getByRole('searchbox').fill('🚀'.repeat(101));
    await waitForText(page, 'A query has at most 100 characters; this one has 101.');
    await page.getByRole('searchbox').fill('🚀'.repeat(100));
    await waitForText(page, 'No name contains “🚀');
  });

  it('shows more results on request', async () => {
    const page = await open('/?q=lib');
    await waitForText(page, 'The first 50 packages with “lib” in the name; there are more.');
    await page.getByRole('link', { name: 'Show up to 500' }).click();
    await waitForText(page, 'The first 500 packages');
    expect(await names(page)).to.deep.equal((await found('lib', 500)).map(({ name }) => name));
    expect(page.url()).to.equal(`${suite.service.url}/?q=lib&limit=500`);
  });

  it('shows all results, five hundred at a time, and focuses the first new one', async () => {
    const all = packages.filter(({ name }) => name.toLowerCase().includes('java'));
    const page = await open('/?q=java&limit=500');
    const more = page.getByRole('button', { name: 'Show more' });
    await expectAccessible(page);
    for (let shown = 500; shown < all.length; shown += 500) {
      expect(await names(page)).to.have.length(shown);
      await more.focus();
      await page.keyboard.press('Enter');
      const now = Math.min(all.length, shown + 500);
      await waitForText(
        page,
        now < all.length
          ? `The first ${now.toLocaleString('en')}`
          : `${now.toLocaleString('en')} packages with`,
      );
      await waitUntilIdle(page);
      expect(await focused(page)).to.equal((await names(page))[shown]);
    }
    expect((await names(page)).sort()).to.deep.equal(all.map(({ name }) => name).sort());
    expect(await more.count()).to.equal(0);
    await expectAccessible(page);
  });

  it('keeps its results if the snapshot with the rest is gone', async () => {
    const page = await open('/?q=java&limit=500');
    await page.route('**/search?*after=*', (route) =>
      route.fulfill({
        status: 410,
        contentType: 'application/problem+json',
        body: JSON.stringify({ code: 'snapshot_gone', detail: 'this snapshot is gone' }),
      }),
    );
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.getByText('The list of packages has been updated: reload the page.').waitFor();
    expect(await names(page)).to.have.length(500);
  });

  it('suggests names if nothing is found, and sends no extra request otherwise', async () => {
    const page = await open();
    const asked: string[] = [];
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (pathname === '/similar' || pathname === '/search') asked.push(pathname);
    });
    await page.keyboard.type('zlib1');
    await waitForText(page, 'with “zlib1” in the name');
    await page.waitForTimeout(500);
    expect(asked).not.to.include('/similar');
    await page.getByRole('searchbox').fill('redis-sevrer');
    await waitForText(page, 'No name contains “redis-sevrer”. 1 similar name.');
    await page.getByRole('heading', { name: 'Did you mean' }).waitFor();
    expect(await names(page)).to.deep.equal(['redis-server']);
    await expectAccessible(page);
    await screenshot(page, 'did-you-mean');
    await page.keyboard.press('ArrowDown');
    expect(await focused(page)).to.equal('redis-server');
    await page.keyboard.press('Enter');
    await waitForText(page, 'with “redis-server” in the name');
    expect(await page.getByRole('searchbox').inputValue()).to.equal('redis-server');
    await page.goBack();
    await waitForText(page, '1 similar name.');
    // No similar names: no suggestions.
    await page.getByRole('searchbox').fill('no such name at all');
    await waitForText(page, 'No name contains “no such name at all”.');
    await page.waitForTimeout(500);
    expect(await page.getByRole('heading', { name: 'Did you mean' }).count()).to.equal(0);
  });

  it('can be shared by its URL, and supports back and forward', async () => {
    const page = await open();
    const box = page.getByRole('searchbox');
    await page.keyboard.type('zlib1g', { delay: 30 });
    await waitForText(page, 'with “zlib1g” in the name');
    await page.keyboard.press('Enter');
    await box.fill('');
    await waitUntilIdle(page);
    await box.fill('golang');
    await waitForText(page, 'with “golang” in the name');

    const other = await open(new URL(page.url()).search);
    expect(await other.getByRole('searchbox').inputValue()).to.equal('golang');
    expect(await names(other)).to.deep.equal(await names(page));

    await page.goBack();
    await waitForText(page, 'with “zlib1g” in the name');
    expect(await box.inputValue()).to.equal('zlib1g');
    expect((await names(page))[0]).to.equal('zlib1g');
    await page.goBack();
    await page.getByRole('heading', { name: 'All packages' }).waitFor();
    expect(await box.inputValue()).to.equal('');
    await page.goForward();
    await waitForText(page, 'with “zlib1g” in the name');
  });

  it('drops a response that arrives after that of a later query', async () => {
    const page = await open();
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let held = 0;
    await page.route('**/search?q=py*', async (route) => {
      held++;
      const answer = await route.fetch();
      await released;
      // The page has aborted the request meanwhile.
      await route.fulfill({ response: answer }).catch(() => undefined);
    });
    const box = page.getByRole('searchbox');
    await box.fill('python3-re');
    while (held === 0) await page.waitForTimeout(10);
    await box.fill('redis');
    await waitForText(page, 'with “redis” in the name');
    const shown = await names(page);
    release();
    await page.waitForTimeout(300);
    expect(await names(page)).to.deep.equal(shown);
    await waitForText(page, 'with “redis” in the name');
  });

  it('sends one request for several letters typed at once', async () => {
    const page = await open();
    const asked: string[] = [];
    page.on('request', (request) => {
      const { pathname, search } = new URL(request.url());
      if (pathname === '/search') asked.push(search);
    });
    await page.evaluate(() => {
      const box = document.querySelector('input') as HTMLInputElement;
      for (const text of ['sq', 'sql', 'sqli', 'sqlit', 'sqlite']) {
        box.value = text;
        box.dispatchEvent(new Event('input'));
      }
    });
    await waitForText(page, 'with “sqlite” in the name');
    expect(asked).to.deep.equal(['?q=sqlite&limit=50']);
  });

  it('works with the keyboard alone', async () => {
    const page = await open('/?q=redis');
    const [first = '', second = ''] = await names(page);
    await page.keyboard.press('ArrowDown');
    expect(await focused(page)).to.equal(first);
    await page.keyboard.press('ArrowDown');
    expect(await focused(page)).to.equal(second);
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    expect(await focused(page)).to.equal('query');
    await page.keyboard.press('Enter');
    expect(await focused(page)).to.equal(first);
    await page.keyboard.press('Escape');
    expect(await focused(page)).to.equal('query');
    await page.keyboard.press('Enter');
    await page.keyboard.press('/');
    expect(await focused(page)).to.equal('query');
    await page.keyboard.type('a/b');
    expect(await page.getByRole('searchbox').inputValue()).to.equal('a/b');
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'All packages' }).waitFor();
    expect(await page.getByRole('searchbox').inputValue()).to.equal('');

    // Enter waits for the results of the text typed just before.
    await page.keyboard.type('zlib1g');
    await page.keyboard.press('Enter');
    await waitForText(page, 'with “zlib1g” in the name');
    expect(await focused(page)).to.equal('zlib1g');
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');

    // Enter on a package opens it.
    const url = (await found('redis', 1))[0]?.url ?? '';
    await page.route(url, (route) => route.fulfill({ body: 'the package' }));
    await page.keyboard.type('redis');
    await waitForText(page, 'with “redis” in the name');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    await page.waitForURL(url);
  });

  it('browses all packages, page by page', async () => {
    const page = await open();
    const pager = page.getByRole('navigation', { name: 'Pages' });
    const shows = async (number: number, from: number, to?: number) => {
      await pager.getByText(`Page ${number} of 637`).waitFor();
      await waitUntilIdle(page);
      expect(await names(page)).to.deep.equal(packages.slice(from, to).map(({ name }) => name));
    };
    await shows(1, 0, 100);
    expect(await pager.getByRole('link').allTextContents()).to.deep.equal(['Next page', 'Last page']);
    await pager.getByRole('link', { name: 'Next page' }).click();
    await shows(2, 100, 200);
    expect(page.url()).to.equal(`${suite.service.url}/?page=2`);
    await pager.getByRole('link', { name: 'Last page' }).click();
    await shows(637, 63_600);
    await page.goBack();
    await shows(2, 100, 200);
    await pager.getByRole('link', { name: 'First page' }).click();
    await shows(1, 0, 100);

    const past = await open('/?page=9999');
    await past.getByText('This page is past the end.').waitFor();
    await past.getByRole('link', { name: 'Previous page' }).click();
    await past.getByText('Page 637 of 637').waitFor();
  });

  it('fits a phone, and supports dark mode', async () => {
    const phone = await open('/?q=redis', {
      viewport: { width: 360, height: 740 },
      hasTouch: true,
      isMobile: true,
      deviceScaleFactor: 2,
    });
    expect(await phone.evaluate(() => document.documentElement.scrollWidth)).to.equal(360);
    const heights = await phone
      .locator('.packages a')
      .evaluateAll((all) => all.map((link) => link.clientHeight));
    expect(Math.min(...heights)).to.be.at.least(40);
    await expectAccessible(phone);
    await screenshot(phone, 'phone');

    const dark = await open('/?q=redis', { colorScheme: 'dark' });
    const luminance = await dark.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(luminance).to.equal('rgb(18, 21, 26)');
    await expectAccessible(dark);
    await screenshot(dark, 'dark');
  });

  it('works under a path that a proxy strips', async () => {
    const proxy = createServer(({ url = '', headers }, response) => {
      const path = url.replace(/^\/below/, '');
      if (path === url) response.writeHead(404).end();
      else {
        request(suite.service.url + path, { headers }, (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
        }).end();
      }
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    try {
      const { port } = proxy.address() as AddressInfo;
      const page = await browser.open(`http://127.0.0.1:${port}/below/`);
      await page.getByText('63,666 packages').waitFor();
      await page.keyboard.type('redis');
      await waitForText(page, 'with “redis” in the name');
      expect(new URL(page.url()).pathname).to.equal('/below/');
      await page.getByRole('link', { name: 'API' }).click();
      const stats = page.getByRole('region', { name: 'GET /stats' });
      await stats.getByRole('button', { name: 'Try it' }).click();
      await stats.getByText('HTTP 200').waitFor();
      await page.getByRole('link', { name: 'Package search' }).click();
      await page.waitForURL('**/below/');
    } finally {
      proxy.close();
      proxy.closeAllConnections();
    }
  });

  it('runs no code except its own files', async () => {
    const page = await open();
    const ran = await page.evaluate(() => {
      const script = document.createElement('script');
      try {
        script.textContent = 'globalThis.intruder = true';
        document.body.append(script);
      } catch {
        return 'refused';
      }
      return String((globalThis as { intruder?: boolean }).intruder ?? false);
    });
    expect(ran).to.equal('refused');
    expect(browser.complaints()).to.have.lengthOf(1);
  });
});
