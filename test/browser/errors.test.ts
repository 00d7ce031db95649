import { expect } from 'chai';
import type { Page } from 'playwright-core';
import {
  expectAccessible,
  holdBack,
  names,
  respond,
  searchBox,
  waitForAlert,
  waitForText,
  waitUntilIdle,
  useBrowser,
  type Respond,
} from './browser.js';
import { datasetServer, heldBack } from '../support/dataset-server.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { EngineLink } from '../support/engine-link.js';
import { engines } from '../support/engines.js';
import { startService, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const COUNTDOWN = /^Retrying in (\d+) seconds?\.$/;

const packages = packagesNamed(['alpha', 'beta', 'gamma']);

const UNEXPECTED = 'An unexpected response arrived';

const json = (body: unknown): Respond => ({ contentType: 'application/json', body: JSON.stringify(body) });
const problem = (status: number, detail: string): Respond => ({
  status,
  contentType: 'application/problem+json',
  body: JSON.stringify({ detail }),
});

/** A response to no request of the page. */
const OTHER = json({ query: 'other', page: 9, total: 1, source: 1, results: [] });

/** The remaining seconds that the page shows. */
async function countdown(page: Page): Promise<number> {
  const timer = page.getByRole('timer').filter({ hasText: COUNTDOWN });
  return Number(COUNTDOWN.exec((await timer.textContent()) ?? '')?.[1]);
}

describe('Errors on the search page', function () {
  this.timeout(60_000);
  const browser = useBrowser();

  describe('over the limit', () => {
    const WINDOW_SECONDS = 3;
    const suite = useService(
      () => packages,
      () => ({ RATE_LIMIT_POINTS: '4', RATE_LIMIT_WINDOW_SECONDS: String(WINDOW_SECONDS) }),
    );
    /** Uses up the limit, at the beginning of a window. */
    const useUpLimit = () =>
      waitFor(async () => {
        const { headers } = await suite.service.get('/search?q=al');
        return headers.get('Retry-After') === String(WINDOW_SECONDS);
      }, 'the beginning of a window');

    it('counts down to an automatic retry', async () => {
      const page = await browser.show(suite.service.url);
      await useUpLimit();
      await page.keyboard.type('alpha');
      const trouble = await waitForAlert(page, 'Too many requests from your address.');
      const seconds = await countdown(page);
      expect(seconds).to.be.within(1, WINDOW_SECONDS);
      await expectAccessible(page);
      await waitFor(
        async () => !(await trouble.isVisible()) || (await countdown(page)) < seconds,
        'the countdown',
      );
      await waitForText(page, '1 package with “alpha” in the name.');
      expect(await trouble.isVisible()).to.equal(false);
    });
  });

  it('end with a cold start', async () => {
    const origin = heldBack(() => toCsv(packages));
    const dataset = await datasetServer(origin.listener);
    const service = await startService({ DATASET_URL: dataset.url });
    try {
      const page = await browser.show(service.url);
      const trouble = await waitForAlert(page, 'The first snapshot is still being loaded.');
      expect(await countdown(page)).to.be.within(1, 2);
      await expectAccessible(page);
      origin.release();
      await page.getByRole('link', { name: 'gamma' }).waitFor();
      await page.getByText('3 packages').waitFor();
      expect(await trouble.isVisible()).to.equal(false);
    } finally {
      origin.release();
      await service.end();
      await dataset.close();
    }
  });

  describe('during an outage', () => {
    let link: EngineLink;
    before(async () => {
      link = await EngineLink.start(engines().elasticsearch.url);
    });
    const suite = useService(
      () => packages,
      () => ({ CACHE_MAX_BYTES: '0', ELASTICSEARCH_URL: link.url }),
    );
    after(() => link.stop());

    it('retries until the search engine responds', async () => {
      const page = await browser.show(suite.service.url);
      link.delayMs = 60_000;
      try {
        await page.keyboard.type('beta');
        await waitForAlert(page, 'The search engine does not respond.');
      } finally {
        link.delayMs = 0;
        link.cut();
      }
      await waitForText(page, '1 package with “beta” in the name.');
    });

    it('retries until the service can be reached', async () => {
      const page = await browser.show(suite.service.url);
      await page.clock.install();
      await page.context().setOffline(true);
      await page.keyboard.type('gamma');
      await waitForAlert(page, 'The service cannot be reached.');
      expect(await countdown(page)).to.be.within(1, 10);
      await page.context().setOffline(false);
      await page.clock.fastForward(10_000);
      await waitForText(page, '1 package with “gamma” in the name.');
    });
  });

  describe('with unexpected responses', () => {
    const suite = useService(() =>
      packagesNamed(['alpha', 'beta', ...Array.from({ length: 600 }, (_, i) => `package-${1000 + i}`)]),
    );
    const open = (path: string) => browser.show(suite.service.url + path);

    it('replace the results of the previous query', async () => {
      const page = await open('/?q=alpha');
      const restore = await respond(page, '**/search?q=beta&*', OTHER);
      await searchBox(page).fill('beta');
      await waitForAlert(page, UNEXPECTED);
      await waitUntilIdle(page);
      expect(await countdown(page)).to.be.within(1, 10);
      expect(await names(page)).to.deep.equal([]);
      expect(await page.getByRole('status').textContent()).to.equal('');
      await expectAccessible(page);
      await restore();
      await searchBox(page).fill('alpha');
      await waitForText(page, '1 package with “alpha” in the name.');
      expect(await page.getByRole('alert').isVisible()).to.equal(false);
    });

    for (const [response, words] of [
      [json(null), UNEXPECTED],
      [problem(410, 'snapshot is gone'), 'The list of packages has been updated meanwhile.'],
    ] as const)
      it(`replace a list that is not complete until the retry: ${words}`, async () => {
        const page = await open('/?q=package&limit=500');
        await page.clock.install();
        const restore = await respond(page, '**/search?*after=*', response);
        await page.getByRole('link', { name: 'Show up to 1,000' }).click();
        await page.clock.runFor(100);
        await waitForAlert(page, words);
        expect(await names(page)).to.deep.equal([]);
        await restore();
        await page.clock.runFor(10_100);
        await waitForText(page, '600 packages with “package” in the name.');
        expect(await names(page)).to.have.length(600);
      });

    it('are shown if a response never ends', async () => {
      const page = await browser.open(`${suite.service.url}/?q=alpha`, {}, () => {
        const setTimeout = window.setTimeout.bind(window);
        window.setTimeout = ((act: () => void, ms: number) =>
          setTimeout(act, ms === 30_000 ? 300 : ms)) as typeof window.setTimeout;
      });
      const release = await holdBack(page, '**/search?q=beta&*');
      await searchBox(page).fill('beta');
      await waitForAlert(page, 'The service cannot be reached.');
      await waitUntilIdle(page);
      release();
    });
  });
});
