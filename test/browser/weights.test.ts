import { expect } from 'chai';
import type { Page } from 'playwright-core';
import {
  contentWidth,
  expectAccessible,
  focused,
  names,
  recordRequests,
  respond,
  searchBox,
  waitForHeading,
  waitForText,
  waitUntilIdle,
  useBrowser,
} from './browser.js';
import { packagesNamed } from '../support/datasets.js';
import { useService } from '../support/service.js';

/** Names and weights: a package that many use, names like it, and more names than are shown at first. */
const WEIGHTS: readonly (readonly [string, number])[] = [
  ['express', 123_456_789],
  ['expresss', 45],
  ['exprss', 0],
  ['ex-press', 4_500],
  ['exprexs', 7],
  ['expres', 12_345],
  ['expense', 999],
  ['express-session', 9_876_543],
  ['express-rate-limit', 12_300_000],
  ['express-async', 0],
  ['express-basic-auth', 1_234],
  ['babel-plugin-express', 88],
  ['a-router-for-express', 0],
  ['react', 250_000_000],
  ['reactt', 3],
  ...Array.from({ length: 60 }, (_, i) => [`react-${10 + i}`, i] as const),
  ...Array.from({ length: 560 }, (_, i) => [`use-react-${100 + i}`, 1000 - i] as const),
];

const BY_WEIGHT = ['express-rate-limit', 'express-session', 'express-basic-auth', 'express-async'];

describe('The search page with weights', function () {
  this.timeout(60_000);
  const weights = WEIGHTS.map(([, weight]) => weight);
  const suite = useService(() =>
    packagesNamed(WEIGHTS.map(([name]) => name)).map((entry, i) => ({ ...entry, weight: weights[i] ?? 0 })),
  );
  const browser = useBrowser();
  const open = (path = '/', options = {}) => browser.show(suite.service.url + path, options);
  const order = (page: Page) => page.getByRole('group', { name: 'Order' });
  /** The options of the toggle, by their accessible names. */
  const option = (page: Page, name: string) => order(page).getByRole('radio', { name, exact: true });
  const lookAlikes = (page: Page) => page.locator('.look-alikes li');
  const waitForLookAlikes = async (page: Page) => {
    // Until then, the page shows those of the view before.
    await waitUntilIdle(page);
    await waitForHeading(page, 'Easily mistaken for');
  };
  /** What screen readers say of changes that are not in the status line. */
  const spoken = (page: Page, text: string) =>
    page.locator('#announcement[aria-live=polite]').filter({ hasText: text }).waitFor({ state: 'attached' });

  it('shows the most used matches first', async () => {
    const page = await open();
    expect(await order(page).isVisible()).to.equal(false);
    await page.keyboard.type('express-');
    await waitForText(page, '4 packages with “express-” in the name.');
    expect(await names(page)).to.deep.equal(BY_WEIGHT);
    expect(await option(page, 'Most used').isChecked()).to.equal(true);
  });

  it('keeps the chosen order in the URL', async () => {
    const page = await open('/?q=express-');
    await option(page, 'A–Z').check();
    await page.waitForURL('**/?q=express-&sort=name');
    await waitUntilIdle(page);
    expect(await names(page)).to.deep.equal(BY_WEIGHT.toSorted());
    expect(await option(page, 'A–Z').evaluate((one) => one === document.activeElement)).to.equal(true);
    await page.goBack();
    await page.waitForURL('**/?q=express-');
    await waitUntilIdle(page);
    expect(await names(page)).to.deep.equal(BY_WEIGHT);
    expect(await option(page, 'Most used').isChecked()).to.equal(true);
    await page.goForward();
    await page.waitForURL('**/?q=express-&sort=name');
    await page.reload();
    await waitForText(page, 'express-');
    expect(await names(page)).to.deep.equal(BY_WEIGHT.toSorted());
    expect(await option(page, 'A–Z').isChecked()).to.equal(true);
  });

  it('keeps the chosen order for the next query', async () => {
    const page = await open('/?q=express-&sort=name');
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    await waitForHeading(page, 'All packages');
    await page.keyboard.type('react');
    await waitForText(page, 'The first 50 of 622 packages with “react” in the name.');
    expect(page.url()).to.equal(`${suite.service.url}/?q=react&sort=name`);
    expect((await names(page))[1]).to.equal('react-10');
  });

  it('shows rounded weights beside exact ones for screen readers', async () => {
    const page = await open('/?q=express-');
    expect(await page.locator('.packages .weight').allTextContents()).to.deep.equal(
      ['12.3 M', '9.88 M', '1.23 K', '0'].map((text) => text.replace(' ', '\u202F')),
    );
    const name = 'express-rate-limit 1.0.0 12,300,000 uses';
    await page.getByRole('link', { name, exact: true }).waitFor();
    await page.getByTitle('12,300,000 uses').waitFor();
  });

  it('says that a truncated list has only the first results', async () => {
    const page = await open('/?q=react');
    const headings = () => page.getByRole('heading', { level: 2 }).allTextContents();
    expect(await headings()).to.deep.equal(['Exactly this name 1', 'Names that start with it first 49']);
    await page.getByRole('link', { name: 'Show up to 500' }).click();
    await waitForText(page, 'The first 500 of 622 packages');
    const whole = ['Exactly this name 1', 'Names that start with it 61'];
    expect(await headings()).to.deep.equal([...whole, 'Names that contain it first 438']);
    await page.getByRole('link', { name: 'Show up to 1,000' }).click();
    await waitForText(page, /^622 packages/);
    expect(await headings()).to.deep.equal([...whole, 'Names that contain it 560']);
  });

  it('shows the look-alikes of an exact match half a second after the last letter', async () => {
    const page = await open();
    await page.clock.install();
    const sent = recordRequests(page);
    const requested = () => sent.filter((path) => path.startsWith('/similar'));
    // Both are names of packages.
    for (const letters of ['express', 's']) {
      await page.keyboard.type(letters);
      await page.clock.runFor(100);
      await waitForText(page, 'in the name.');
      await page.clock.runFor(350);
      expect(requested()).to.deep.equal([]);
    }
    await page.clock.runFor(200);
    await waitForLookAlikes(page);
    expect(requested()).to.deep.equal(['/similar?name=expresss&sort=weight&limit=50']);
    for (const name of [
      'express 123,456,789 uses much more used',
      'expres 12,345 uses much more used',
      'ex-press 4,500 uses much more used',
      'exprexs 7 uses',
      'exprss 0 uses',
    ])
      await lookAlikes(page).getByRole('link', { name, exact: true }).waitFor();
    await spoken(page, 'Easily mistaken for 5 names, 3 of them much more used.');
    await expectAccessible(page);
  });

  it('searches for a look-alike that is clicked', async () => {
    const page = await open('/?q=expresss');
    await waitForLookAlikes(page);
    await lookAlikes(page).getByRole('link').first().click();
    await waitForText(page, '8 packages with “express” in the name.');
    expect(await searchBox(page).inputValue()).to.equal('express');
    await waitForLookAlikes(page);
    expect(await page.getByText('much more used').count()).to.equal(0);
  });

  it('shows the look-alikes beside the exact match without moving the list below', async () => {
    const page = await open('/?q=react&limit=500');
    const rows = page.locator('.packages li');
    const before = await rows.nth(9).boundingBox();
    await waitForLookAlikes(page);
    expect((await rows.nth(9).boundingBox())?.y).to.equal(before?.y);
    expect(await lookAlikes(page).getByRole('link').count()).to.equal(1);
  });

  it('shows no error if the look-alikes are refused', async () => {
    const page = await open();
    await respond(page, '**/similar?*', { status: 503, headers: { 'Retry-After': '60' }, body: '' });
    const refused = page.waitForResponse('**/similar?*');
    await searchBox(page).fill('express');
    await (await refused).finished();
    await page.waitForTimeout(100);
    expect(await page.getByRole('alert').isVisible()).to.equal(false);
    expect((await names(page)).length).to.be.greaterThan(0);
    expect(await lookAlikes(page).count()).to.equal(0);
  });

  it('leaves the rest of the rate limit to searches', async () => {
    const page = await open();
    await page.route('**/search?*', async (route) => {
      const response = await route.fetch();
      const limit = { RateLimit: '"reading";r=29;t=60', 'RateLimit-Policy': '"reading";q=120;w=60' };
      await route.fulfill({ response, headers: { ...response.headers(), ...limit } });
    });
    const sent = recordRequests(page);
    await page.keyboard.type('expresss');
    await waitForText(page, '1 package with');
    await page.waitForTimeout(800);
    expect(sent.filter((path) => path.startsWith('/similar'))).to.deep.equal([]);
  });

  it('shows names as they are if the browser translates the page', async () => {
    const page = await open('/?q=express-');
    const before = await names(page);
    await page.evaluate(() => {
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      const texts: Text[] = [];
      while (walker.nextNode() !== null) texts.push(walker.currentNode as Text);
      for (const text of texts) {
        if (text.parentElement?.closest('[translate=no]')) continue;
        const shown = document.createElement('span');
        shown.append(`übersetzt: ${text.data}`);
        text.replaceWith(shown);
      }
    });
    expect(await names(page)).to.deep.equal(before);
    expect(await page.locator('.version').first().textContent()).not.to.include('übersetzt');
    await waitForText(page, /^übersetzt: .*express-/);
    expect(await page.locator('#status bdi').textContent()).to.equal('express-');
    expect(await searchBox(page).getAttribute('autocorrect')).to.equal('off');
  });

  it('reaches the order and the look-alikes by the keyboard', async () => {
    const page = await open('/?q=expresss');
    await waitForLookAlikes(page);
    await page.keyboard.press('/');
    for (const [key, name] of [
      ['Tab', 'Most used'],
      ['/', 'Most used'],
      ['ArrowRight', 'A–Z'],
      ['ArrowLeft', 'Most used'],
      ['Tab', 'expresss'],
      ['Tab', 'express'],
      ['/', 'express'],
    ] as const) {
      await page.keyboard.press(key);
      if (key.startsWith('Arrow')) await waitForLookAlikes(page);
      const reached = await page.evaluate(() => document.activeElement?.closest('a,label')?.textContent);
      expect(reached, key).to.include(name);
    }
    await page.keyboard.press('Escape');
    expect(await focused(page)).to.equal('query');
  });

  it('links to the JSON and the feeds of a search', async () => {
    const page = await open('/?q=react&sort=name');
    const link = page.getByRole('link', { name: 'This search as JSON' });
    const href = (await link.getAttribute('href')) ?? '';
    expect(href).to.equal('search?q=react&sort=name&total=true&limit=50');
    const { body } = await suite.service.get(`/${href}`);
    expect((body.results as { name: string }[]).map(({ name }) => name)).to.deep.equal(await names(page));
    const hrefOf = (name: string) => page.getByRole('link', { name }).getAttribute('href');
    expect(await hrefOf('Follow this search')).to.equal('changes.atom?q=react');
    expect(await hrefOf('Follow its look-alikes')).to.equal('changes.atom?like=react');
    await searchBox(page).fill('no such+name');
    await waitForText(page, 'No name contains');
    expect(await hrefOf('Follow this search')).to.equal('changes.atom?q=no+such%2Bname&match=words');
    expect(await page.getByRole('link', { name: 'Follow its look-alikes' }).count()).to.equal(0);
  });

  it('fits a dark phone', async () => {
    const phone = { viewport: { width: 320, height: 900 }, hasTouch: true, isMobile: true } as const;
    for (const [path, ready] of [
      ['/?q=expresss', 'Easily mistaken for'],
      ['/?q=express', 'Easily mistaken for'],
      ['/?q=exprss-', 'Did you mean'],
      ['/', 'All packages'],
    ] as const) {
      const page = await open(path, { ...phone, colorScheme: 'dark' });
      await waitForHeading(page, ready);
      expect(await contentWidth(page)).to.equal(320);
      const links = page.locator('.packages a');
      const heights = await links.evaluateAll((all) => all.map((link) => link.clientHeight));
      expect(Math.min(...heights)).to.be.at.least(40);
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      expect(background).to.equal('rgb(18, 21, 26)');
      await expectAccessible(page);
    }
  });

  describe('of a registry without weights or feeds', () => {
    const plain = useService(
      () => packagesNamed(['express', 'expresss', 'exprss']),
      () => ({ CHANGES_RETENTION: '0' }),
    );

    it('offers neither an order nor a feed', async () => {
      const page = await browser.show(`${plain.service.url}/?q=express`);
      await waitForLookAlikes(page);
      expect(await order(page).isVisible()).to.equal(false);
      expect(await lookAlikes(page).getByRole('link').allTextContents()).to.deep.equal([
        'expresss',
        'exprss',
      ]);
      expect(await page.locator('.weight, [href^="changes.atom"]').count()).to.equal(0);
      expect(await names(page)).to.deep.equal(['express', 'expresss']);
      await expectAccessible(page);
      await page.keyboard.press('/');
      await page.keyboard.press('Escape');
      await waitForHeading(page, 'All packages');
      expect(await page.locator('[href^="changes.atom"]').count()).to.equal(0);
    });
  });
});
