import { expect } from 'chai';
import { contentWidth, expectAccessible, names, useBrowser, waitForText } from './browser.js';
import { packagesNamed } from '../support/datasets.js';
import { useService } from '../support/service.js';

/** One fits, one is cut, one is written from right to left, and one package has none. */
const TEXTS = ['An HTTP client.', 'long '.repeat(60).trim(), 'مكتبة', undefined];
const PACKAGES = packagesNamed(['lib-a', 'lib-b', 'lib-c', 'lib-d']);

describe('The search page with descriptions', function () {
  this.timeout(60_000);
  const suite = useService(() =>
    PACKAGES.map((entry, i) => (TEXTS[i] === undefined ? entry : { ...entry, description: TEXTS[i] })),
  );
  const plain = useService(() => PACKAGES);
  const browser = useBrowser();

  for (const width of [1280, 320])
    it(`shows one line of each in rows of equal height, ${width} pixels wide`, async () => {
      const page = await browser.show(`${suite.service.url}/?q=lib-`, { viewport: { width, height: 900 } });
      await waitForText(page, '4 packages with');
      expect(await names(page)).to.have.length(4);
      expect(await page.locator('.description').allTextContents()).to.deep.equal(TEXTS.slice(0, 3));
      const heightsOf = (selector: string) =>
        page.locator(selector).evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
      expect(new Set(await heightsOf('.packages li'))).to.have.property('size', 1);
      expect(new Set(await heightsOf('.description'))).to.have.property('size', 1);
      expect(await contentWidth(page)).to.equal(width);
      await expectAccessible(page);
    });

  it('leaves no room for descriptions that the dataset lacks', async () => {
    const page = await browser.show(`${plain.service.url}/?q=lib-`);
    await waitForText(page, '4 packages with');
    expect(await page.locator('.description').count()).to.equal(0);
    const row = await page.locator('.packages li').first().boundingBox();
    expect(row?.height).to.be.below(48);
  });
});
