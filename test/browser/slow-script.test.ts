import { expect } from 'chai';
import type { Page } from 'playwright-core';
import {
  focused,
  names,
  recordRequests,
  searchBox,
  useBrowser,
  waitForHeading,
  waitForText,
} from './browser.js';
import { packagesNamed } from '../support/datasets.js';
import { useService } from '../support/service.js';

describe('The search page before its script has loaded', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['redis', 'lodash', 'lodash-es']));
  const browser = useBrowser();

  /** Opens the page at a path, calls `type` before the script arrives, then lets it arrive. */
  async function open(path: string, type: (page: Page) => Promise<void>) {
    const page = await browser.open('about:blank');
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/page/search-page.js', async (route) => {
      await released;
      await route.continue();
    });
    await page.goto(suite.service.url + path, { waitUntil: 'commit' });
    await searchBox(page).waitFor();
    await type(page);
    const sent = recordRequests(page);
    release();
    return { page, searches: () => sent.filter((one) => one.startsWith('/search')) };
  }

  for (const [path, entries] of [
    ['/', 'all packages'],
    ['/?q=lodash', 'the old query'],
    ['/?page=1', 'a page'],
  ] as const) {
    it(`keeps and searches text that was typed over ${entries} (${path})`, async () => {
      const { page, searches } = await open(path, (page) => searchBox(page).pressSequentially('redis '));
      await waitForText(page, '1 package with “redis” in the name.');
      expect(await searchBox(page).inputValue()).to.equal('redis ');
      expect(await focused(page)).to.equal('query');
      expect(await names(page)).to.deep.equal(['redis']);
      expect(new URL(page.url()).search).to.equal('?q=redis');
      expect(searches()).to.have.length(1);
      await page.goBack();
      if (path === '/?q=lodash') await waitForText(page, '2 packages with “lodash”');
      else await waitForHeading(page, 'All packages');
      expect(await searchBox(page).inputValue()).to.equal(path === '/?q=lodash' ? 'lodash' : '');
    });
  }

  it('keeps the cursor in the text', async () => {
    const { page } = await open('/', async (page) => {
      await searchBox(page).pressSequentially('ris');
      await searchBox(page).press('ArrowLeft');
      await searchBox(page).press('ArrowLeft');
      await searchBox(page).pressSequentially('e');
    });
    await waitForText(page, 'No name contains “reis”.');
    await searchBox(page).press('Delete');
    await searchBox(page).pressSequentially('di');
    await waitForText(page, '1 package with “redis” in the name.');
  });

  it('searches once if the text is the query of the URL, and shows this query if nothing was typed', async () => {
    for (const typed of ['lodash', '', ' ']) {
      const { page, searches } = await open('/?q=lodash', (page) => searchBox(page).pressSequentially(typed));
      await waitForText(page, '2 packages with “lodash”');
      expect(await searchBox(page).inputValue(), typed).to.equal('lodash');
      expect(new URL(page.url()).search).to.equal('?q=lodash');
      expect(searches()).to.have.length(1);
      await page.context().close();
    }
  });
});
