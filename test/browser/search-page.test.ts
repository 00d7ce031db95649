import { expect } from 'chai';
import type { Page } from 'playwright-core';
import {
  expectAccessible,
  focused,
  holdBack,
  hrefs,
  names,
  recordRequests,
  searchBox,
  waitForHeading,
  waitForText,
  useBrowser,
} from './browser.js';
import { bundledPackages } from '../support/datasets.js';
import { useService } from '../support/service.js';

/** Those that the tests search for, over a thousand of them with "java", and a total with a thousands separator. */
const packages = bundledPackages()
  .filter(({ name }) => /java|redis|sqlite|python3-re|zlib1/.test(name))
  .slice(-1500)
  .map((entry, i) => ({ ...entry, no: i + 1 }));

describe('Searching on the page', function () {
  this.timeout(60_000);
  const suite = useService(() => packages);
  const browser = useBrowser();
  const open = (path = '/', options = {}) => browser.show(suite.service.url + path, options);
  const found = async (q: string, limit: number) =>
    (await suite.service.get(`/search?${new URLSearchParams({ q, limit: String(limit) }).toString()}`)).body
      .results as { name: string; url: string; rank: number }[];
  /** Waits for the results of a query. */
  const waitForResults = (page: Page, query: string) => waitForText(page, `with “${query}” in the name`);

  it('shows results by rank while the user types', async () => {
    const page = await open();
    await page.keyboard.type('redis', { delay: 60 });
    await waitForResults(page, 'redis');
    const expected = await found('redis', 50);
    expect(await names(page)).to.deep.equal(expected.map(({ name }) => name));
    expect(await hrefs(page)).to.deep.equal(expected.map(({ url }) => url));
    expect(await page.getByRole('heading', { level: 2 }).allTextContents()).to.deep.equal(
      ['Exactly this name', 'Names that start with it', 'Names that contain it'].map(
        (title, rank) =>
          `${title} ${rank === 2 ? 'first ' : ''}${expected.filter((match) => match.rank === rank).length}`,
      ),
    );
    const marks = await page.locator('mark').allTextContents();
    expect(new Set(marks.map((mark) => mark.toLowerCase()))).to.deep.equal(new Set(['redis']));
    expect(marks.length).to.be.at.least(expected.length);
    expect(page.url()).to.equal(`${suite.service.url}/?q=redis`);
    expect(await page.title()).to.equal('redis – Package search');
    await expectAccessible(page);
  });

  it('shows a message if nothing is found', async () => {
    const page = await open();
    await page.keyboard.type('no such name');
    await waitForText(page, 'No name contains all words of “no such name”.');
    expect(await names(page)).to.deep.equal([]);
    await expectAccessible(page);
    await searchBox(page).fill('x');
    await waitForText(page, 'No package is named “x”. To search within names, type at least 2 characters.');
    await searchBox(page).pressSequentially('x'.repeat(110));
    await waitForText(page, `No name contains “${'x'.repeat(100)}”.`);
  });

  it('focuses the first of five hundred more results', async () => {
    const all = packages.filter(({ name }) => name.includes('java')).map(({ name }) => name);
    const total = all.length.toLocaleString('en');
    const page = await open('/?q=java');
    await waitForText(page, `The first 50 of ${total} packages with “java” in the name.`);
    for (const [limit, shown, status] of [
      [500, 50, `The first 500 of ${total} packages`],
      [1000, 500, `The first 1,000 of ${total} packages`],
      [1500, 1000, new RegExp(`^${total} packages`)],
    ] as const) {
      const link = page.getByRole('link', { name: `Show up to ${limit.toLocaleString('en')}` });
      await link.focus();
      const { y } = await page.evaluate(() => ({ y: scrollY }));
      expect(y).to.be.greaterThan(0);
      await page.keyboard.press('Enter');
      await waitForText(page, status);
      expect(await focused(page)).to.equal((await names(page))[shown]);
      expect(await page.evaluate(() => scrollY)).to.be.at.least(y);
      expect(page.url()).to.equal(`${suite.service.url}/?q=java&limit=${limit}`);
    }
    expect(await names(page)).to.have.members(all);
    expect(await page.getByRole('link', { name: 'Show up to' }).count()).to.equal(0);
    await expectAccessible(page);
    await page.goBack();
    await waitForText(page, `The first 1,000 of ${total} packages`);
  });

  it('suggests names if nothing is found', async () => {
    const page = await open('/?q=redis-sevrer');
    await waitForHeading(page, 'Did you mean');
    expect(await page.locator('#announcement').textContent()).to.equal('1 similar name.');
    expect(await names(page)).to.deep.equal(['redis-server']);
    await expectAccessible(page);
    await page.keyboard.press('/');
    await page.keyboard.press('ArrowDown');
    expect(await focused(page)).to.equal('redis-server');
    await page.keyboard.press('Enter');
    await waitForResults(page, 'redis-server');
    expect(await searchBox(page).inputValue()).to.equal('redis-server');
    await page.goBack();
    await waitForHeading(page, 'Did you mean');
  });

  it('suggests nothing that is not similar', async () => {
    const page = await open();
    const sent = recordRequests(page);
    await page.keyboard.type('zlib1');
    await waitForResults(page, 'zlib1');
    await page.waitForTimeout(500);
    expect(sent.filter((path) => path.startsWith('/similar'))).to.deep.equal([]);
    const similar = page.waitForResponse('**/similar?*');
    await searchBox(page).fill('no such name at all');
    await (await similar).finished();
    await page.waitForTimeout(100);
    expect(await page.getByRole('heading', { name: 'Did you mean' }).count()).to.equal(0);
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
    const expected = ['/search?q=sqlite&sort=weight&total=true&limit=50'];
    expect(sent.filter((path) => path.startsWith('/search'))).to.deep.equal(expected);
  });

  it('drops a response that arrives after the response to a later query', async () => {
    const page = await open();
    const release = await holdBack(page, '**/search?q=py*');
    const held = page.waitForRequest('**/search?q=py*');
    await searchBox(page).fill('python3-re');
    await held;
    await searchBox(page).fill('sqlite');
    await waitForResults(page, 'sqlite');
    const shown = await names(page);
    release();
    await page.waitForTimeout(300);
    expect(await names(page)).to.deep.equal(shown);
    await waitForResults(page, 'sqlite');
  });

  it('moves the focus by keys', async () => {
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
  });

  it('opens a package by Enter', async () => {
    const page = await open();
    const url = (await found('zlib1g', 1))[0]?.url ?? '';
    await page.route(url, (route) => route.fulfill({ body: 'the package' }));
    // The first Enter waits for the results of the text typed just before.
    await page.keyboard.type('zlib1g');
    await page.keyboard.press('Enter');
    await waitForResults(page, 'zlib1g');
    expect(await focused(page)).to.equal('zlib1g');
    await page.keyboard.press('Enter');
    await page.waitForURL(url);
  });

  it('leaves keys to the browser on a page that is opened by its URL', async () => {
    for (const path of ['/?q=java', '/?page=2']) {
      const page = await open(path);
      expect(await page.evaluate(() => document.activeElement?.tagName), path).to.equal('BODY');
      const text = await searchBox(page).inputValue();
      for (const key of ['Space', 'PageDown']) await page.keyboard.press(key);
      await page.waitForFunction(() => scrollY > 100);
      expect(await searchBox(page).inputValue()).to.equal(text);
      await page.keyboard.press('/');
      expect(await focused(page), path).to.equal('query');
    }
    await (await open()).getByText('/ to search if nothing has the focus').waitFor();
  });

  it('can be shared by its URL', async () => {
    const page = await open();
    await page.keyboard.type('sqlite');
    await waitForResults(page, 'sqlite');
    const other = await open(new URL(page.url()).search);
    expect(await searchBox(other).inputValue()).to.equal('sqlite');
    expect(await names(other)).to.deep.equal(await names(page));
  });

  it('supports back and forward', async () => {
    const page = await open();
    const box = searchBox(page);
    await page.keyboard.type('zlib1g', { delay: 30 });
    await waitForResults(page, 'zlib1g');
    await page.keyboard.press('Enter');
    await box.fill('');
    await waitForHeading(page, 'All packages');
    await box.fill('sqlite');
    await waitForResults(page, 'sqlite');
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

  it('begins a new entry of the history after a pause in typing', async () => {
    const page = await open();
    await page.clock.install();
    const entries = await page.evaluate(() => history.length);
    for (const [ms, text, added] of [
      [1500, 'zlib', 1],
      [1500, 'zlib1', 1],
      [2500, 'zlib1g', 1],
      [0, 'zlib1', 2],
    ] as const) {
      await searchBox(page).fill(text);
      await page.clock.runFor(ms);
      expect(await page.evaluate(() => history.length), text).to.equal(entries + added);
    }
  });
});
