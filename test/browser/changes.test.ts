import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
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
  waitForAlert,
  waitForHeading,
  waitForText,
  useBrowser,
} from './browser.js';
import { packagesNamed } from '../support/datasets.js';
import { useService } from '../support/service.js';

const HEADING = 'What changed since the previous snapshot';

/** The link to the changes in the snapshot bar, by its accessible name. */
function barLink(page: Page, label: string) {
  return page
    .getByRole('complementary', { name: 'Snapshot' })
    .getByRole('link', { name: `${label} since the previous snapshot`, exact: true });
}

/** Loads all changes, with one request although the button is pressed twice, and moves those at the end into view. */
async function showAll(page: Page, status: RegExp): Promise<void> {
  const more = page.getByRole('button', { name: 'Show more' });
  const release = await holdBack(page, '**/changes?*after=*');
  const sent = recordRequests(page);
  await more.focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  release();
  await waitForText(page, status);
  expect(sent.filter((path) => path.includes('after='))).to.have.length(1);
  expect(await more.count()).to.equal(0);
  await page.locator('.change.updated').first().scrollIntoViewIfNeeded();
}

describe('The list of changes on the search page', function () {
  this.timeout(60_000);
  const base = packagesNamed(Array.from({ length: 1200 }, (_, i) => `package-${1000 + i}`));
  const suite = useService(() => base);
  const browser = useBrowser();
  const open = (path = '/?changes', options = {}) => browser.show(suite.service.url + path, options);

  it('is empty for the first snapshot, and the bar has no link to the changes', async () => {
    const page = await open();
    await page.getByText('1,200 packages').waitFor();
    await waitForHeading(page, HEADING);
    await waitForText(page, 'The snapshot has not been compared with a previous one.');
    expect(await page.locator('#snapshot a[href="?changes"]').count()).to.equal(0);
    expect(await names(page)).to.deep.equal([]);
    await expectAccessible(page);
  });

  it('is empty if the next snapshot has equal packages', async () => {
    await suite.publish(base);
    const page = await open();
    await waitForText(page, 'Nothing has changed since the previous snapshot.');
    await barLink(page, '0 added, 0 removed, 0 updated').getByText('+0 \u22120').waitFor();
    await expectAccessible(page);
    await screenshot(page, 'changes-none');
  });

  describe('after a rebuild', () => {
    const added = packagesNamed(Array.from({ length: 520 }, (_, i) => `new-${100 + i}`));
    const changed = [
      // 3 removed, 2 updated.
      ...base.slice(3, 5).map((entry) => ({ ...entry, version: '2.0.0-with-a-much-longer-version' })),
      ...base.slice(5),
      ...added.map((entry) => ({ ...entry, no: entry.no + base.length })),
    ];
    const LABEL = '520 added, 3 removed, 2 updated';
    const ALL = new RegExp(`^525 changes: ${LABEL}\\.$`);
    let expected: (PackageEntry & { change: string })[];

    before(async () => {
      await suite.publish(changed);
      expected = (await suite.service.get('/changes?limit=1000')).body.results as typeof expected;
      expect(expected).to.have.length(525);
    });

    it('is linked from the bar, shows the change of each package, and all changes on request', async () => {
      const page = await open('/');
      const link = barLink(page, LABEL);
      expect(await link.locator('[aria-hidden]').textContent()).to.equal('+520 \u22123');
      await expectAccessible(page);
      await screenshot(page, 'changes-bar');
      await link.click();
      await waitForHeading(page, HEADING);
      await waitForText(page, `The first 500 of 525 changes: ${LABEL}.`);
      expect(page.url()).to.equal(`${suite.service.url}/?changes`);
      expect(await page.title()).to.equal('What changed – Package search');
      expect(await names(page)).to.deep.equal(expected.slice(0, 500).map(({ name }) => name));
      await expectAccessible(page);
      await screenshot(page, 'changes');
      await showAll(page, ALL);
      expect(await focused(page)).to.equal(expected[500]?.name);
      expect(await names(page)).to.deep.equal(expected.map(({ name }) => name));
      const texts = (selector: string) => page.locator(`.packages ${selector}`).allTextContents();
      expect(await texts('.change')).to.deep.equal(expected.map(({ change }) => change));
      expect(await texts('.version')).to.deep.equal(expected.map(({ version }) => version));
      expect(await hrefs(page)).to.deep.equal(expected.map(({ url }) => url));
      await expectAccessible(page);
      await screenshot(page, 'changes-end');
    });

    it('can be shared by its URL, and supports back and forward', async () => {
      const page = await open('/');
      await barLink(page, LABEL).click();
      await waitForText(page, '525 changes');
      await page.reload();
      await waitForText(page, '525 changes');
      expect(await searchBox(page).inputValue()).to.equal('');
      await searchBox(page).fill('new-519');
      await waitForText(page, '1 package with “new-519” in the name.');
      await page.goBack();
      await waitForText(page, '525 changes');
      await page.goBack();
      await waitForHeading(page, 'All packages');
      await page.goForward();
      await waitForHeading(page, HEADING);
    });

    // All keys: search-page.test.ts.
    it('works with the keyboard alone', async () => {
      const page = await open('/');
      await barLink(page, LABEL).focus();
      await page.keyboard.press('Enter');
      await waitForText(page, '525 changes');
      await page.keyboard.press('ArrowDown');
      expect(await focused(page)).to.equal(expected[0]?.name);
      await page.keyboard.press('Escape');
      expect(await focused(page)).to.equal('query');
      await page.keyboard.press('Escape');
      await waitForHeading(page, 'All packages');
      expect(page.url()).to.equal(`${suite.service.url}/`);
    });

    it('links to the feed of new packages', async () => {
      const page = await open();
      const link = page.getByRole('link', { name: 'Feed of new packages' });
      const head = page.locator('link[rel=alternate][type="application/atom+xml"]');
      for (const one of [link, head]) expect(await one.getAttribute('href')).to.equal('changes.atom');
    });

    it('fits a phone, and supports dark mode', async () => {
      const viewport = { width: 320, height: 700 };
      const page = await open('/?changes', { viewport, hasTouch: true, isMobile: true, colorScheme: 'dark' });
      await showAll(page, ALL);
      expect(await contentWidth(page)).to.equal(320);
      await expectAccessible(page);
      await screenshot(page, 'changes-phone-dark');
    });

    it('shows an error if the changes were not recorded, and retries automatically', async () => {
      const page = await open('/');
      const detail = 'the changes of this snapshot were not recorded';
      await answerProblem(page, '**/changes?*', 503, { code: 'search_unavailable', detail });
      await barLink(page, LABEL).click();
      await waitForAlert(page, 'The changes of this snapshot were not recorded.');
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
      const sent = recordRequests(page);
      await link.focus();
      const health = page.waitForResponse('**/health');
      await page.clock.runFor(15_000);
      await health;
      await page.clock.runFor(1000);
      expect(await link.evaluate((one) => one === document.activeElement)).to.equal(true);

      const [first, ...others] = changed as [PackageEntry, ...PackageEntry[]];
      await suite.publish([...others, { ...first, name: 'renamed' }]);
      await page.clock.runFor(3 * 60_000);
      expect(sent).not.to.include('/stats');
      await page.clock.runFor(3 * 60_000);
      await barLink(page, '1 added, 1 removed, 0 updated').click();
      await waitForText(page, '2 changes: 1 added, 1 removed, 0 updated.');
      expect(await names(page)).to.have.members([first.name, 'renamed']);
      expect(sent.filter((path) => path === '/stats')).to.have.length(1);
    });
  });

  describe('of a service that records no changes', () => {
    const unrecorded = useService(
      () => packagesNamed(['alpha', 'beta']),
      () => ({ CHANGES_RETENTION: '0' }),
    );

    it('is replaced by an error message', async () => {
      await unrecorded.publish(packagesNamed(['alpha', 'gamma']));
      const page = await browser.show(`${unrecorded.service.url}/?changes`);
      await waitForAlert(page, 'This service does not record changes.');
      await page.getByText('2 packages').waitFor();
      expect(await page.locator('#snapshot a[href="?changes"]').count()).to.equal(0);
      await expectAccessible(page);
    });
  });
});
