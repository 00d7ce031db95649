import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible, screenshot, waitForText, waitUntilIdle, useBrowser } from './browser.js';
import { datasetServer, heldBack, type DatasetServer } from '../support/dataset-server.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const COUNTDOWN = /^Retrying in (\d+) seconds?\.$/;

/** The remaining seconds that the page shows. */
async function countdown(page: Page): Promise<number> {
  const timer = page.getByRole('timer').filter({ hasText: COUNTDOWN });
  return Number(COUNTDOWN.exec((await timer.textContent()) ?? '')?.[1]);
}

describe('The search page', function () {
  this.timeout(60_000);
  const browser = useBrowser();

  describe('over the limit', () => {
    const suite = useService(
      () => packagesNamed(['alpha', 'beta', 'gamma']),
      () => ({ RATE_LIMIT_POINTS: '4', RATE_LIMIT_WINDOW_SECONDS: '5' }),
    );

    it('shows an error with a countdown, and retries automatically', async () => {
      const page = await browser.open(suite.service.url);
      await waitUntilIdle(page);
      // The page itself has sent two requests.
      for (const q of ['al', 'be', 'ga']) await suite.service.get(`/search?q=${q}`);
      await page.keyboard.type('alpha');
      const trouble = page.getByRole('alert').filter({ hasText: 'Too many requests from your address.' });
      await trouble.waitFor();
      const seconds = await countdown(page);
      expect(seconds).to.be.within(1, 5);
      await expectAccessible(page);
      await screenshot(page, 'limited');
      await waitFor(
        async () => !(await trouble.isVisible()) || (await countdown(page)) < seconds,
        'the countdown',
      );
      await waitForText(page, '1 package with “alpha” in the name.');
      expect(await trouble.isVisible()).to.equal(false);
    });

    it('waits for longer pauses in typing if little of the budget is left', async () => {
      const page = await browser.open(suite.service.url);
      await waitUntilIdle(page);
      const asked: string[] = [];
      page.on('request', (request) => asked.push(new URL(request.url()).search));
      // The first response reports an empty budget; each of the next letters comes within the longer pause.
      await waitFor(async () => {
        await page.getByRole('searchbox').fill('gamm');
        await waitUntilIdle(page);
        return page.getByRole('status').filter({ hasText: 'gamm' }).isVisible();
      }, 'a response');
      asked.length = 0;
      await page.getByRole('searchbox').pressSequentially('axyz', { delay: 100 });
      expect(asked.filter((search) => search.startsWith('?q='))).to.deep.equal([]);
    });
  });

  describe('during a cold start', () => {
    const origin = heldBack(() => toCsv(packagesNamed(['alpha', 'beta', 'gamma'])));
    let dataset: DatasetServer | undefined;
    let service: Service | undefined;

    before(async function () {
      this.timeout(ENGINES_TIMEOUT_MS);
      dataset = await datasetServer(origin.listener);
      service = await startService({ DATASET_URL: dataset.url });
    });
    after(async () => {
      origin.release();
      await service?.end();
      await dataset?.close();
    });

    it('shows an error, and the packages as soon as they are loaded', async () => {
      const page = await browser.open(service?.url ?? '');
      await page
        .getByRole('alert')
        .filter({ hasText: 'The first snapshot is still being loaded.' })
        .waitFor();
      await page.getByText('The service is loading its first snapshot').waitFor();
      expect(await countdown(page)).to.be.within(1, 2);
      await expectAccessible(page);
      await screenshot(page, 'initializing');
      origin.release();
      await page.getByRole('link', { name: 'gamma' }).waitFor();
      expect(await page.getByRole('alert').isVisible()).to.equal(false);
    });
  });

  describe('during an outage', () => {
    const suite = useService(
      () => packagesNamed(['alpha', 'beta', 'gamma']),
      () => ({ CACHE_MAX_BYTES: '0' }),
    );

    it('shows that the search engine does not respond, and retries automatically', async () => {
      const page = await browser.open(suite.service.url);
      await waitUntilIdle(page);
      const { elasticsearch } = await engines();
      await elasticsearch.pause();
      try {
        await page.keyboard.type('beta');
        await page.getByRole('alert').filter({ hasText: 'The search engine does not respond.' }).waitFor();
        await screenshot(page, 'unavailable');
      } finally {
        await elasticsearch.resume();
      }
      await waitForText(page, '1 package with “beta” in the name.');
    });

    it('shows that the service cannot be reached, and retries automatically', async () => {
      const page = await browser.open(suite.service.url);
      await waitUntilIdle(page);
      await page.context().setOffline(true);
      await page.keyboard.type('gamma');
      await page.getByRole('alert').filter({ hasText: 'The service cannot be reached.' }).waitFor();
      expect(await countdown(page)).to.be.within(1, 5);
      await page.context().setOffline(false);
      await waitForText(page, '1 package with “gamma” in the name.');
    });
  });
});
