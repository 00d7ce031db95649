import { expect } from 'chai';
import type { PackageEntry } from '../../src/search/package-document.js';
import { screenshot, waitForText, waitUntilIdle, useBrowser } from './browser.js';
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
  const packages: PackageEntry[] = packagesNamed(WILD).map((entry) => ({
    ...entry,
    url: `https://registry.example/p/${encodeURIComponent(entry.name)}`,
  }));
  const suite = useService(() => packages);
  const browser = useBrowser();

  it('are shown unchanged, and link to the registry', async () => {
    const page = await browser.open(suite.service.url);
    await waitUntilIdle(page);
    expect(await page.locator('.packages .name').allTextContents()).to.deep.equal(WILD);
    const hrefs = await page
      .locator('.packages a')
      .evaluateAll((all) => all.map((one) => one.getAttribute('href')));
    expect(hrefs).to.deep.equal(packages.map(({ url }) => url));
    await screenshot(page, 'names');
  });

  it('are found by their own text, fully highlighted, from the search box and from the URL', async () => {
    const page = await browser.open(suite.service.url);
    for (const { name } of packages) {
      const query = Array.from(name).slice(0, 100).join('').trim();
      await page.getByRole('searchbox').fill(query);
      await waitForText(page, '1 package with');
      expect(await page.locator('.packages .name').textContent()).to.equal(name);
      expect(await page.locator('mark').first().textContent()).to.equal(query);
      await page.reload();
      await waitForText(page, '1 package with');
      expect(await page.getByRole('searchbox').inputValue()).to.equal(query);
      await page.goto(suite.service.url);
    }
  });

  it('never make the page wider than a phone', async () => {
    const page = await browser.open(`${suite.service.url}/?q=long-`, {
      viewport: { width: 320, height: 600 },
    });
    await waitForText(page, '1 package with');
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).to.equal(320);
    await page.goto(suite.service.url);
    await waitUntilIdle(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).to.equal(320);
  });
});
