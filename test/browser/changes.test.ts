import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { PackageEntry } from '../../src/search/package-document.js';
import {
  expectAccessible,
  focused,
  names,
  screenshot,
  waitForText,
  waitUntilIdle,
  useBrowser,
} from './browser.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { useService } from '../support/service.js';

const HEADING = 'What changed since the previous snapshot';

interface Change extends PackageEntry {
  change: string;
}

/** The link to the changes in the snapshot bar, by its accessible name. */
function barLink(page: Page, label: string) {
  return page
    .getByRole('complementary', { name: 'Snapshot' })
    .getByRole('link', { name: `${label} since the previous snapshot`, exact: true });
}

async function answerProblem(page: Page, path: string, status: number, body: object): Promise<void> {
  await page.route(path, (route) =>
    route.fulfill({
      status,
      contentType: 'application/problem+json',
      ...(status === 503 ? { headers: { 'Retry-After': '60' } } : {}),
      body: JSON.stringify(body),
    }),
  );
}

describe('The list of changes on the search page', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['alpha', 'beta', 'gamma', 'delta']));
  const browser = useBrowser();
  const open = async (path = '/?changes', options = {}) => {
    const page = await browser.open(suite.service.url + path, options);
    await waitUntilIdle(page);
    return page;
  };
  const load = async (packages: readonly PackageEntry[]) => {
    await suite.dataset.write(toCsv([...packages]));
    expect((await suite.service.rebuild()).status).to.equal(202);
  };

  it('is empty for the first snapshot, and the bar has no link to it', async () => {
    const page = await open();
    await page.getByText('4 packages').waitFor();
    await page.getByRole('heading', { name: HEADING }).waitFor();
    await waitForText(page, 'The snapshot has not been compared with a previous one.');
    expect(await page.locator('#snapshot a[href="?changes"]').count()).to.equal(0);
    expect(await names(page)).to.deep.equal([]);
    await expectAccessible(page);
  });

  describe('after a rebuild', () => {
    const base = packagesNamed(
      Array.from({ length: 1500 }, (_, i) => `package-${String(i).padStart(4, '0')}`),
    );
    const added = packagesNamed(
      Array.from({ length: 520 }, (_, i) => `new-${String(i).padStart(3, '0')}`),
    ).map((entry) => ({ ...entry, no: entry.no + base.length }));
    const changed = [
      // 30 removed, 20 updated.
      ...base.slice(30, 50).map((entry) => ({ ...entry, version: '2.0.0-with-a-much-longer-version' })),
      ...base.slice(50),
      ...added,
    ];
    const LABEL = '520 added, 30 removed, 20 updated';
    const ALL = new RegExp(`^570 changes: ${LABEL}\\.$`);
    let expected: Change[];

    before(async function () {
      this.timeout(60_000);
      await load(base);
      await load(changed);
      const first = (await suite.service.get('/changes?limit=1000')).body as { results: Change[] };
      expected = first.results;
      expect(expected).to.have.length(570);
    });

    it('is linked from the bar, and shows what happened to each package', async () => {
      const page = await open('/');
      const link = barLink(page, LABEL);
      expect(await link.locator('[aria-hidden]').textContent()).to.equal('+520 \u221230');
      await expectAccessible(page);
      await screenshot(page, 'changes-bar');
      await link.click();
      await page.getByRole('heading', { name: HEADING }).waitFor();
      await waitForText(page, `The first 500 of 570 changes: ${LABEL}.`);
      expect(page.url()).to.equal(`${suite.service.url}/?changes`);
      expect(await page.title()).to.equal('What changed – Package search');
      const shown = expected.slice(0, 500);
      expect(await names(page)).to.deep.equal(shown.map(({ name }) => name));
      const texts = (selector: string) => page.locator(`.packages ${selector}`).allTextContents();
      expect(await texts('.change')).to.deep.equal(shown.map(({ change }) => change));
      expect(await texts('.version')).to.deep.equal(shown.map(({ version }) => version));
      const hrefs = await page
        .locator('.packages a')
        .evaluateAll((all) => all.map((one) => one.getAttribute('href')));
      expect(hrefs).to.deep.equal(shown.map(({ url }) => url));
      await expectAccessible(page);
      await screenshot(page, 'changes');
    });

    it('shows all changes on request, and focuses the first new one', async () => {
      const page = await open();
      const more = page.getByRole('button', { name: 'Show more' });
      await more.focus();
      await page.keyboard.press('Enter');
      await waitForText(page, ALL);
      expect(await names(page)).to.deep.equal(expected.map(({ name }) => name));
      expect(await focused(page)).to.equal(expected[500]?.name);
      expect(await more.count()).to.equal(0);
      await page.locator('.change.updated').first().scrollIntoViewIfNeeded();
      await expectAccessible(page);
      await screenshot(page, 'changes-end');
    });

    it('can be shared by its URL, and supports back and forward', async () => {
      const page = await open('/');
      await barLink(page, LABEL).click();
      await waitForText(page, '570 changes');
      await page.reload();
      await waitForText(page, '570 changes');
      expect(await page.getByRole('searchbox').inputValue()).to.equal('');
      await page.getByRole('searchbox').fill('new-519');
      await waitForText(page, '1 package with “new-519” in the name.');
      await page.goBack();
      await waitForText(page, '570 changes');
      await page.goBack();
      await page.getByRole('heading', { name: 'All packages' }).waitFor();
      await page.goForward();
      await page.getByRole('heading', { name: HEADING }).waitFor();
    });

    it('works with the keyboard alone', async () => {
      const page = await open('/');
      await barLink(page, LABEL).focus();
      await page.keyboard.press('Enter');
      await waitForText(page, '570 changes');
      const [first = '', second = ''] = await names(page);
      await page.keyboard.press('ArrowDown');
      expect(await focused(page)).to.equal(first);
      await page.keyboard.press('ArrowDown');
      expect(await focused(page)).to.equal(second);
      await page.keyboard.press('Escape');
      expect(await focused(page)).to.equal('query');
      // Enter moves from the box to the first package, and opens it from there.
      const url = expected[0]?.url ?? '';
      await page.route(url, (route) => route.fulfill({ body: 'the package' }));
      await page.keyboard.press('Enter');
      expect(await focused(page)).to.equal(first);
      await page.keyboard.press('Enter');
      await page.waitForURL(url);
      await page.goBack();
      await waitForText(page, '570 changes');
      await page.keyboard.press('/');
      await page.keyboard.press('Escape');
      await page.getByRole('heading', { name: 'All packages' }).waitFor();
      expect(page.url()).to.equal(`${suite.service.url}/`);
    });

    it('links to the feed of new packages', async () => {
      const page = await open();
      const link = page.getByRole('link', { name: 'Feed of new packages' });
      const head = page.locator('link[rel=alternate][type="application/atom+xml"]');
      for (const one of [link, head]) expect(await one.getAttribute('href')).to.equal('changes.atom');
      const response = await page.request.get(`${suite.service.url}/changes.atom`);
      expect(response.status()).to.equal(200);
      expect(response.headers()['content-type']).to.match(/^application\/atom\+xml/);
    });

    it('fits a phone, and supports dark mode', async () => {
      const phone = await open('/?changes', {
        viewport: { width: 320, height: 700 },
        hasTouch: true,
        isMobile: true,
      });
      await phone.getByRole('button', { name: 'Show more' }).click();
      await waitForText(phone, ALL);
      await phone.locator('.change.updated').first().scrollIntoViewIfNeeded();
      expect(await phone.evaluate(() => document.documentElement.scrollWidth)).to.equal(320);
      await screenshot(phone, 'changes-phone');

      const dark = await open('/?changes', { colorScheme: 'dark' });
      await dark.getByRole('button', { name: 'Show more' }).click();
      await waitForText(dark, ALL);
      await dark.locator('.change.updated').first().scrollIntoViewIfNeeded();
      await expectAccessible(dark);
      await screenshot(dark, 'changes-dark');
    });

    it('keeps its entries if the snapshot with the rest is gone', async () => {
      const page = await open();
      const gone = { code: 'snapshot_gone', detail: 'this snapshot is gone' };
      await answerProblem(page, '**/changes?*after=*', 410, gone);
      await page.getByRole('button', { name: 'Show more' }).click();
      await page.getByText('The list of packages has been updated: reload the page.').waitFor();
      expect(await names(page)).to.have.length(500);
    });

    it('shows an error if the changes were not recorded, and retries automatically', async () => {
      const page = await open('/');
      const unknown = {
        code: 'search_unavailable',
        detail: 'the changes of this snapshot were not recorded',
      };
      await answerProblem(page, '**/changes?*', 503, unknown);
      await barLink(page, LABEL).click();
      await page
        .getByRole('alert')
        .filter({ hasText: 'The changes of this snapshot were not recorded.' })
        .waitFor();
      await page
        .getByRole('timer')
        .filter({ hasText: /Retrying in \d+ seconds\./ })
        .waitFor();
      await expectAccessible(page);
    });

    it('shows how many changes it has loaded if /stats is unavailable', async () => {
      const page = await browser.open(suite.service.url);
      await answerProblem(page, '**/stats', 503, { code: 'search_unavailable', detail: 'away' });
      await page.goto(`${suite.service.url}/?changes`);
      await waitForText(page, 'The first 500 changes; there are more.');
    });

    it('is updated within minutes, without moving the focus, if the number of packages stays the same', async () => {
      const page = await open('/');
      await page.clock.install();
      await page.reload();
      const link = barLink(page, LABEL);
      await link.waitFor();
      const asked: string[] = [];
      page.on('request', (request) => asked.push(new URL(request.url()).pathname));
      await link.focus();
      const health = page.waitForResponse('**/health');
      await page.clock.runFor(15_000);
      await health;
      await page.clock.runFor(1000);
      expect(await link.evaluate((one) => one === document.activeElement)).to.equal(true);

      const [first, ...others] = changed;
      await load([...others, { ...(first as PackageEntry), name: 'renamed' }]);
      await page.clock.runFor(3 * 60_000);
      expect(asked).not.to.include('/stats');
      await page.clock.runFor(3 * 60_000);
      const renamed = barLink(page, '1 added, 1 removed, 0 updated');
      await renamed.click();
      await waitForText(page, '2 changes: 1 added, 1 removed, 0 updated.');
      expect(await names(page)).to.have.members([first?.name, 'renamed']);
      expect(asked.filter((path) => path === '/stats')).to.have.length(1);
    });

    it('is empty if the next snapshot is the same', async () => {
      const before = (await suite.service.get('/stats')).headers.get('X-Snapshot');
      await suite.service.rebuild();
      expect((await suite.service.get('/stats')).headers.get('X-Snapshot')).not.to.equal(before);
      const page = await open();
      await waitForText(page, 'Nothing has changed since the previous snapshot.');
      await barLink(page, '0 added, 0 removed, 0 updated').getByText('+0 \u22120').waitFor();
      await expectAccessible(page);
      await screenshot(page, 'changes-none');
    });
  });
});

describe('The list of changes on the search page of a service that records no changes', function () {
  this.timeout(60_000);
  const suite = useService(
    () => packagesNamed(['alpha', 'beta']),
    () => ({ CHANGES_RETENTION: '0' }),
  );
  const browser = useBrowser();

  it('is replaced by an error message', async () => {
    await suite.service.rebuild();
    const page = await browser.open(`${suite.service.url}/?changes`);
    await page.getByRole('alert').filter({ hasText: 'This service does not record changes.' }).waitFor();
    await page.getByText('2 packages').waitFor();
    expect(await page.locator('#snapshot a[href="?changes"]').count()).to.equal(0);
    await expectAccessible(page);
  });
});
