import { request } from 'node:http';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import {
  answerProblem,
  contentWidth,
  expectAccessible,
  focused,
  holdBack,
  hrefs,
  names,
  recordRequests,
  screenshot,
  searchBox,
  waitForHeading,
  waitForText,
  waitUntilIdle,
  useBrowser,
} from './browser.js';
import { datasetServer } from '../support/dataset-server.js';
import { bundledPackages } from '../support/datasets.js';
import { useService } from '../support/service.js';

/** Those that the tests search for, over a thousand of them with "java", and a total with a thousands separator. */
const packages = bundledPackages()
  .filter(({ name }) => /java|redis|sqlite|python3-re|zlib1/.test(name))
  .slice(-1500)
  .map((entry, i) => ({ ...entry, no: i + 1 }));

describe('The search page', function () {
  this.timeout(60_000);
  const suite = useService(() => packages);
  const browser = useBrowser();
  const open = (path = '/', options = {}) => browser.show(suite.service.url + path, options);
  const found = async (q: string, limit: number) =>
    (await suite.service.get(`/search?${new URLSearchParams({ q, limit: String(limit) }).toString()}`)).body
      .results as { name: string; url: string; rank: number }[];
  /** Waits for the results of a query. */
  const waitForResults = (page: Page, query: string) => waitForText(page, `with “${query}” in the name`);

  it('initially shows the registry and the first page of packages, with less than 30 KB of files', async () => {
    const page = await open();
    expect(await names(page)).to.deep.equal(packages.slice(0, 100).map(({ name }) => name));
    const about = page.getByRole('complementary', { name: 'Snapshot' });
    await about.getByText('1,500 packages').waitFor();
    await about.getByText('The service is healthy').waitFor();
    await about.getByText(/^snapshot taken (this minute|\d+ minutes? ago)$/).waitFor();
    expect(await about.getByRole('link').getAttribute('href')).to.equal('https://tracker.debian.org/');
    expect(await focused(page)).to.equal('query');
    const sent = await page.evaluate(() =>
      performance
        .getEntries()
        .filter((entry) => entry instanceof PerformanceResourceTiming)
        .map(({ name, encodedBodySize: bytes }) => ({ path: new URL(name).pathname, bytes })),
    );
    const files = sent.filter(({ path }) => path === '/' || path.startsWith('/page/'));
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    console.log(`      sent: ${bytes} bytes of ${files.length} files`);
    expect(files.map(({ path }) => path)).to.include.members(['/', '/page/page.css', '/page/search-page.js']);
    expect(bytes).to.be.within(1000, 30_000);
    await expectAccessible(page);
    await screenshot(page, 'empty');
  });

  it('searches while the user types, with results by rank, highlighted matches and links to the registry', async () => {
    const page = await open();
    await page.keyboard.type('redis', { delay: 60 });
    await waitForResults(page, 'redis');
    const expected = await found('redis', 50);
    expect(await names(page)).to.deep.equal(expected.map(({ name }) => name));
    expect(await page.getByRole('heading', { level: 2 }).allTextContents()).to.deep.equal(
      ['Exactly this name', 'Names that start with it', 'Names that contain it'].map(
        (title, rank) =>
          `${title} ${rank === 2 ? 'first ' : ''}${expected.filter((match) => match.rank === rank).length}`,
      ),
    );
    expect(await hrefs(page)).to.deep.equal(expected.map(({ url }) => url));
    const marks = await page.locator('mark').allTextContents();
    expect(new Set(marks.map((mark) => mark.toLowerCase()))).to.deep.equal(new Set(['redis']));
    expect(marks.length).to.be.at.least(expected.length);
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
    for (const [query, message] of [
      ['x', 'No package is named “x”. To search within names, type at least 2 characters.'],
      ['🚀'.repeat(101), 'A query has at most 100 characters; this one has 101.'],
      ['🚀'.repeat(100), 'No name contains “🚀'],
    ] as const) {
      await searchBox(page).fill(query);
      await waitForText(page, message);
    }
  });

  it('shows more results on request, five hundred at a time, and focuses the first new result', async () => {
    const all = packages.filter(({ name }) => name.includes('java')).map(({ name }) => name);
    const page = await open('/?q=java');
    const total = all.length.toLocaleString('en');
    await waitForText(page, `The first 50 of ${total} packages with “java” in the name.`);
    const entries = await page.evaluate(() => history.length);
    const release = await holdBack(page, '**/search?*limit=500');
    await page.getByRole('link', { name: 'Show up to 500' }).evaluate((link: HTMLElement) => {
      link.click();
      link.click();
    });
    release();
    await waitForText(page, `The first 500 of ${total} packages`);
    expect(await page.evaluate(() => history.length)).to.equal(entries + 1);
    expect(await names(page)).to.deep.equal((await found('java', 500)).map(({ name }) => name));
    expect(page.url()).to.equal(`${suite.service.url}/?q=java&limit=500`);
    const more = page.getByRole('button', { name: 'Show more' });
    for (const [shown, status] of [
      [500, `The first 1,000 of ${total} packages with`],
      [1000, `${total} packages with`],
    ] as const) {
      await more.focus();
      await page.keyboard.press('Enter');
      await waitForText(page, status);
      await waitUntilIdle(page);
      expect(await focused(page)).to.equal((await names(page))[shown]);
    }
    expect(await names(page)).to.have.members(all);
    expect(await more.count()).to.equal(0);
    await expectAccessible(page);
  });

  it('keeps its results if the snapshot with the rest is gone', async () => {
    const page = await open('/?q=java&limit=500');
    const gone = { code: 'snapshot_gone', detail: 'this snapshot is gone' };
    await answerProblem(page, '**/search?*after=*', 410, gone);
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.getByText('The list of packages has been updated: reload the page.').waitFor();
    expect(await names(page)).to.have.length(500);
  });

  it('suggests names only if nothing is found, with one extra request', async () => {
    const page = await open();
    const sent = recordRequests(page);
    await page.keyboard.type('zlib1');
    await waitForResults(page, 'zlib1');
    await page.waitForTimeout(500);
    expect(sent.filter((path) => path.startsWith('/similar'))).to.deep.equal([]);
    await searchBox(page).fill('redis-sevrer');
    await waitForText(page, 'No name contains “redis-sevrer”. 1 similar name.');
    await waitForHeading(page, 'Did you mean');
    expect(await names(page)).to.deep.equal(['redis-server']);
    await expectAccessible(page);
    await screenshot(page, 'did-you-mean');
    await page.keyboard.press('ArrowDown');
    expect(await focused(page)).to.equal('redis-server');
    await page.keyboard.press('Enter');
    await waitForResults(page, 'redis-server');
    expect(await searchBox(page).inputValue()).to.equal('redis-server');
    await page.goBack();
    await waitForText(page, '1 similar name.');
    // No similar names: no suggestions.
    const similar = page.waitForResponse('**/similar?*');
    await searchBox(page).fill('no such name at all');
    await waitForText(page, 'No name contains “no such name at all”.');
    await (await similar).finished();
    expect(await page.getByRole('heading', { name: 'Did you mean' }).count()).to.equal(0);
  });

  it('can be shared by its URL, and supports back and forward', async () => {
    const page = await open();
    const box = searchBox(page);
    await page.keyboard.type('zlib1g', { delay: 30 });
    await waitForResults(page, 'zlib1g');
    await page.keyboard.press('Enter');
    await box.fill('');
    await waitUntilIdle(page);
    await box.fill('sqlite');
    await waitForResults(page, 'sqlite');

    const other = await open(new URL(page.url()).search);
    expect(await searchBox(other).inputValue()).to.equal('sqlite');
    expect(await names(other)).to.deep.equal(await names(page));

    await page.goBack();
    await waitForResults(page, 'zlib1g');
    expect(await box.inputValue()).to.equal('zlib1g');
    expect((await names(page))[0]).to.equal('zlib1g');
    await page.goBack();
    await waitForHeading(page, 'All packages');
    expect(await box.inputValue()).to.equal('');
    await page.goForward();
    await waitForResults(page, 'zlib1g');
  });

  it('drops a response that arrives after the response to a later query', async () => {
    const page = await open();
    const release = await holdBack(page, '**/search?q=py*');
    const held = page.waitForRequest('**/search?q=py*');
    await searchBox(page).fill('python3-re');
    await held;
    await searchBox(page).fill('redis');
    await waitForResults(page, 'redis');
    const shown = await names(page);
    release();
    await page.waitForTimeout(300);
    expect(await names(page)).to.deep.equal(shown);
    await waitForResults(page, 'redis');
  });

  it('sends one request for several letters typed at once', async () => {
    const page = await open();
    const sent = recordRequests(page);
    await page.evaluate(() => {
      const box = document.querySelector('input') as HTMLInputElement;
      for (const text of ['sq', 'sql', 'sqli', 'sqlit', 'sqlite']) {
        box.value = text;
        box.dispatchEvent(new Event('input'));
      }
    });
    await waitForResults(page, 'sqlite');
    expect(sent.filter((path) => path.startsWith('/search'))).to.deep.equal([
      '/search?q=sqlite&sort=weight&total=true&limit=50',
    ]);
  });

  it('works with the keyboard alone', async () => {
    const page = await open('/?q=redis');
    const [first, second] = await names(page);
    for (const [key, focus] of [
      ['/', 'query'],
      ['Shift+ArrowDown', 'query'],
      ['ArrowDown', first],
      ['Shift+ArrowDown', first],
      ['ArrowDown', second],
      ['Shift+ArrowUp', second],
      ['ArrowUp', first],
      ['ArrowUp', 'query'],
      ['Enter', first],
      ['Escape', 'query'],
      ['Enter', first],
      ['/', first],
      ['Escape', 'query'],
    ] as const) {
      await page.keyboard.press(key);
      expect(await focused(page), key).to.equal(focus);
    }
    await searchBox(page).fill('');
    await page.keyboard.type('a/b');
    expect(await searchBox(page).inputValue()).to.equal('a/b');
    await page.keyboard.press('Escape');
    await waitForHeading(page, 'All packages');
    expect(await searchBox(page).inputValue()).to.equal('');

    // Enter waits for the results of the text typed just before.
    await page.keyboard.type('zlib1g');
    await page.keyboard.press('Enter');
    await waitForResults(page, 'zlib1g');
    expect(await focused(page)).to.equal('zlib1g');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');

    // Enter on a package opens it.
    const url = (await found('redis', 1))[0]?.url ?? '';
    await page.route(url, (route) => route.fulfill({ body: 'the package' }));
    await page.keyboard.type('redis');
    await waitForResults(page, 'redis');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    await page.waitForURL(url);
  });

  it('leaves keys to the browser on a page that is opened by its URL', async () => {
    for (const path of ['/?q=java', '/?page=2', '/?changes']) {
      const page = await open(path);
      expect(await page.evaluate(() => document.activeElement?.tagName), path).to.equal('BODY');
      const text = await searchBox(page).inputValue();
      for (const key of ['Space', 'PageDown']) await page.keyboard.press(key);
      if (path !== '/?changes') await page.waitForFunction(() => scrollY > 100);
      expect(await searchBox(page).inputValue()).to.equal(text);
      await page.keyboard.press('/');
      expect(await focused(page), path).to.equal('query');
    }
    await (await open()).getByText('/ to search if nothing has the focus').waitFor();
  });

  it('prints results without the controls of the screen', async () => {
    for (const path of ['/?q=java', '/?page=2', '/?q=redis-server']) {
      const page = await open(path);
      const shown = await names(page);
      await page.emulateMedia({ media: 'print' });
      expect(await page.locator('.packages .name').filter({ visible: true }).allTextContents()).to.deep.equal(
        shown,
      );
      for (const hidden of ['form', 'h1', 'header', 'button', '.pager'])
        expect(await page.locator(hidden).filter({ visible: true }).count(), hidden).to.equal(0);
      expect(await page.locator('#snapshot').isVisible()).to.equal(true);
      await screenshot(page, 'print');
    }
  });

  it('works where AbortSignal.any is missing', async () => {
    const page = await browser.open(`${suite.service.url}/?q=redis`, {}, () => {
      Object.defineProperty(AbortSignal, 'any', { value: undefined });
    });
    await waitForResults(page, 'redis');
    await searchBox(page).fill('sqlite');
    await waitForResults(page, 'sqlite');
    await page.getByText('1,500 packages').waitFor();
  });

  it('browses all packages, page by page', async () => {
    const page = await open();
    const pager = page.getByRole('navigation', { name: 'Pages' });
    const shows = async (number: number) => {
      await pager.getByText(`Page ${number} of 15`).waitFor();
      await waitUntilIdle(page);
      const expected = packages.slice((number - 1) * 100, number * 100);
      expect(await names(page)).to.deep.equal(expected.map(({ name }) => name));
    };
    const follow = (name: string) => pager.getByRole('link', { name }).click();
    await shows(1);
    expect(await pager.getByRole('link').allTextContents()).to.deep.equal(['Next page', 'Last page']);
    await follow('Next page');
    await shows(2);
    expect(page.url()).to.equal(`${suite.service.url}/?page=2`);
    await follow('Last page');
    await shows(15);
    await page.goBack();
    await shows(2);
    await follow('First page');
    await shows(1);
    await page.goto(`${suite.service.url}/?page=9999`);
    await page.getByText('This page is past the end.').waitFor();
    await follow('Previous page');
    await shows(15);
  });

  it('fits a phone, and supports dark mode', async () => {
    const viewport = { width: 360, height: 740 };
    const phone = { viewport, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
    const page = await open('/?q=redis', { ...phone, colorScheme: 'dark' });
    expect(await contentWidth(page)).to.equal(360);
    const heights = await page
      .locator('.packages a')
      .evaluateAll((all) => all.map((link) => link.clientHeight));
    expect(Math.min(...heights)).to.be.at.least(40);
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(background).to.equal('rgb(18, 21, 26)');
    await expectAccessible(page);
    await screenshot(page, 'phone-dark');
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
      await page.getByText('1,500 packages').waitFor();
      await page.keyboard.type('redis');
      await waitForResults(page, 'redis');
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
