import { expect } from 'chai';
import { focused, recordRequests, searchBox, waitForHeading, waitForText, useBrowser } from './browser.js';
import { packagesNamed } from '../support/datasets.js';
import { useService } from '../support/service.js';

describe('Typing with an input method on the search page', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['が', 'にほんご', 'redis']));
  const browser = useBrowser();

  /** A page whose timers run only on request, and an input method. */
  async function open() {
    const page = await browser.show(suite.service.url);
    await page.clock.install();
    const client = await page.context().newCDPSession(page);
    const sent = recordRequests(page);
    return {
      page,
      /** The requests of an endpoint. */
      requests: (path: string) => sent.filter((one) => one.startsWith(path)),
      /** Replaces the text that is being composed, and waits longer than any pause of the page for what it shows. */
      compose: async (text: string, status: string) => {
        const { length } = text;
        await client.send('Input.imeSetComposition', { text, selectionStart: length, selectionEnd: length });
        await page.clock.runFor(3000);
        await waitForText(page, status);
        await page.clock.runFor(3000);
      },
      commit: (text: string) => client.send('Input.insertText', { text }),
      /** What is kept of the view. */
      kept: () =>
        page.evaluate(() => ({ entries: history.length, url: location.search, title: document.title })),
    };
  }

  it('searches for incomplete words, but stores only complete words in the history', async () => {
    const { page, requests, compose, commit, kept } = await open();
    const before = await kept();
    for (const [text, status] of [
      ['n', 'To search within names'],
      ['に', 'To search within names'],
      ['にh', 'No name contains “にh”.'],
      ['にほ', '1 package with “にほ”'],
      ['にほん', '1 package with “にほん”'],
    ] as const) {
      await compose(text, status);
      expect(await kept(), text).to.deep.equal(before);
    }
    await commit('にほん');
    await waitForText(page, '1 package with “にほん” in the name.');
    expect(requests('/search')).to.have.length(3);
    expect(await kept()).to.deep.equal({
      entries: before.entries + 1,
      url: `?q=${encodeURIComponent('にほん')}`,
      title: 'にほん – Package search',
    });
    await page.goBack();
    await waitForHeading(page, 'All packages');
    expect(await searchBox(page).inputValue()).to.equal('');
  });

  it('leaves the keys of the input method to it', async () => {
    const { page, compose } = await open();
    await compose('にほ', '1 package with “にほ”');
    for (const key of ['ArrowDown', 'Escape', 'Enter'])
      await page.evaluate(
        (key) =>
          document
            .querySelector('input')
            ?.dispatchEvent(new KeyboardEvent('keydown', { key, isComposing: true, bubbles: true })),
        key,
      );
    expect(await focused(page)).to.equal('query');
    expect(await searchBox(page).inputValue()).to.equal('にほ');
  });

  it('keeps the history as it is if the composition is cancelled', async () => {
    const { page, compose, kept } = await open();
    await searchBox(page).fill('redis');
    await page.clock.runFor(3000);
    await waitForText(page, '1 package with “redis” in the name.');
    const before = await kept();
    await compose('に', 'No name contains “redisに”.');
    await compose('', '1 package with “redis” in the name.');
    expect(await kept()).to.deep.equal(before);
  });
});
