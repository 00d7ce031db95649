import { expect } from 'chai';
import { contentWidth, hrefs, names, screenshot, searchBox, waitForText, useBrowser } from './browser.js';
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
  'zero\u200bwidth',
  '\u202Eevitalbidi',
];

describe('Unusual names on the search page', function () {
  this.timeout(60_000);
  const packages = packagesNamed(WILD);
  const suite = useService(() => packages);
  const browser = useBrowser();

  it('are shown unchanged, link to the registry, and never make the page wider than a phone', async () => {
    const page = await browser.show(suite.service.url, { viewport: { width: 320, height: 600 } });
    expect(await names(page)).to.deep.equal(WILD);
    expect(await hrefs(page)).to.deep.equal(packages.map(({ url }) => url));
    expect(await contentWidth(page)).to.equal(320);
    await screenshot(page, 'names');
    await searchBox(page).fill('long-');
    await waitForText(page, '1 package with');
    expect(await contentWidth(page)).to.equal(320);
  });

  it('are found by their own text, fully highlighted, from the search box and from the URL', async () => {
    const page = await browser.show(suite.service.url);
    for (const name of WILD) {
      const query = Array.from(name).slice(0, 100).join('').trim();
      await searchBox(page).fill(query);
      await waitForText(page, `1 package with “${query}” in the name.`);
      expect(await names(page)).to.deep.equal([name]);
      expect(await page.locator('mark').first().textContent()).to.equal(query);
      await page.reload();
      await waitForText(page, '1 package with');
      expect(await searchBox(page).inputValue()).to.equal(query);
    }
  });
});
