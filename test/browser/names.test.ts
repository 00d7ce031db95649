import { expect } from 'chai';
import {
  contentWidth,
  expectAccessible,
  hrefs,
  names,
  recordRequests,
  searchBox,
  waitForAlert,
  waitForHeading,
  waitForText,
  useBrowser,
} from './browser.js';
import { packagesNamed } from '../support/datasets.js';
import { useService } from '../support/service.js';

const LONGEST = `${'long-'.repeat(102)}er`;

const WILD = [
  '@scope/name',
  '@Scope/Other.Name',
  'UPPER-case',
  'dotted.name.v2',
  LONGEST,
  'naïve-ünï-日本語-🚀',
  'İstanbul',
  'حزمة-عربية',
  '<img src=x onerror=alert(1)>',
  '"quoted" & <b>bold</b>',
  'a+b c%20d#e?f=g',
  'two  spaces',
  'six      spaces',
];

/** Too short for a search. */
const SHORT = ['q', 'é', 'が', '.', '/', '🚀'];

describe('Unusual names on the search page', function () {
  this.timeout(60_000);
  const packages = packagesNamed([...WILD, ...SHORT]);
  const suite = useService(() => packages);
  const browser = useBrowser();

  it('never make the page wider than a phone', async () => {
    const page = await browser.show(suite.service.url, { viewport: { width: 320, height: 600 } });
    expect(await names(page)).to.deep.equal([...WILD, ...SHORT]);
    expect(await hrefs(page)).to.deep.equal(packages.map(({ url }) => url));
    expect(await contentWidth(page)).to.equal(320);
    await searchBox(page).fill('long-');
    await waitForText(page, '1 package with');
    expect(await contentWidth(page)).to.equal(320);
    await searchBox(page).fill(LONGEST.slice(0, 100));
    await waitForText(page, LONGEST.slice(0, 100));
    expect(await contentWidth(page)).to.equal(320);
  });

  it('are found by their own text', async () => {
    const page = await browser.show(suite.service.url);
    for (const name of WILD) {
      const query = Array.from(name).slice(0, 100).join('').trim();
      await searchBox(page).fill(query);
      const words = query.split(/\s+/).filter((word) => word.length > 1);
      const sought = words.length > 1 ? `all words of “${words.join(' ')}”` : `“${query}”`;
      await waitForText(page, `1 package with ${sought} in the name.`);
      expect(await names(page)).to.deep.equal([name]);
      expect(await page.locator('#status').innerText()).to.equal(`1 package with ${sought} in the name.`);
      expect(await page.locator('.name').innerText()).to.equal(name);
      expect(await page.title()).not.to.match(/\p{Bidi_Control}/u);
      expect(await page.locator('mark').first().textContent()).to.equal(words[0]);
      await page.reload();
      await waitForText(page, '1 package with');
      expect(await searchBox(page).inputValue()).to.equal(query);
    }
  });

  it('are found by a single character with one request', async () => {
    const page = await browser.show(suite.service.url);
    const sent = recordRequests(page);
    for (const name of SHORT) {
      await searchBox(page).fill(name);
      await waitForText(page, `The package named “${name}”.`);
      expect(await names(page)).to.deep.equal([name]);
      const lookups = sent.splice(0).filter((path) => path.startsWith('/lookup'));
      expect(lookups).to.deep.equal([`/lookup?${new URLSearchParams({ name }).toString()}`]);
    }
    await expectAccessible(page);
    await page.reload();
    await waitForText(page, 'The package named “🚀”.');
    for (const name of ['x', 'Q', 'か']) {
      await searchBox(page).fill(name);
      await waitForText(page, `No package is named “${name}”. To search within names, type`);
      expect(await names(page)).to.deep.equal([]);
    }
  });
});

describe('Names that the registry compares by a rule, on the search page', function () {
  this.timeout(60_000);
  const suite = useService(
    () => packagesNamed(['typing_extensions', 'zope.interface', '-']),
    () => ({ NAME_RULE: 'pypi' }),
  );
  const browser = useBrowser();

  it('are highlighted in their own spelling', async () => {
    const page = await browser.show(`${suite.service.url}/?q=TYPING--ext`);
    await waitForHeading(page, 'Names that start with it');
    expect(await page.locator('mark').allTextContents()).to.deep.equal(['typing_ext']);
    await searchBox(page).fill('zope_._i');
    await waitForText(page, '1 package with “zope_._i” in the name.');
    expect(await page.locator('mark').allTextContents()).to.deep.equal(['zope.i']);
  });

  it('are highlighted at every word of the query', async () => {
    const page = await browser.show(`${suite.service.url}/?q=-ext+x+TYP`);
    await waitForHeading(page, 'Names that contain all words');
    expect(await page.locator('mark').allTextContents()).to.deep.equal(['typ', '_ext']);
  });

  it('cannot be searched for by separators alone: the page says why', async () => {
    const page = await browser.show(suite.service.url);
    await searchBox(page).fill('._');
    await waitForAlert(page, 'Q must have at least 2 characters where names are compared (pypi).');
  });
});
