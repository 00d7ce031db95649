import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectAccessible, screenshot, waitForText, waitUntilIdle, useBrowser } from './browser.js';
import { datasetServer, heldBack, type DatasetServer } from '../support/dataset-server.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const COUNTDOWN = /^Trying again by itself in (\d+) seconds?\.$/;

/** The seconds that the page still waits, as it says. */
async function countdown(page: Page): Promise<number> {
  const timer = page.getByRole('timer').filter({ hasText: COUNTDOWN });
  return Number(COUNTDOWN.exec((await timer.textContent()) ?? '')?.[1]);
}

describe('The search page in trouble', function () {
  this.timeout(60_000);
  const browser = useBrowser();

  describe('over the limit', () => {
    const suite = useService(
      () => packagesNamed(['alpha', 'beta', 'gamma']),
      () => ({ RATE_LIMIT_POINTS: '4', RATE_LIMIT_WINDOW_SECONDS: '5' }),
    );

    it('says so, counts down, and goes on by itself', async () => {
      const page = await browser.open(suite.service.url);
      await waitUntilIdle(page);
      // The page itself has asked twice.
      for (const q of ['al', 'be', 'ga']) await suite.service.get(`/search?q=${q}`);
      await page.keyboard.type('alpha');
      const trouble = page
        .getByRole('alert')
        .filter({ hasText: 'Too many requests have come from your address.' });
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

    it('waits for longer pauses in typing where little is left', async () => {
      const page = await browser.open(suite.service.url);
      await waitUntilIdle(page);
      const asked: string[] = [];
      page.on('request', (request) => asked.push(new URL(request.url()).search));
      // The first one tells that there is nothing left after it; each of the next letters comes within the longer pause.
      await waitFor(async () => {
        await page.getByRole('searchbox').fill('gamm');
        await waitUntilIdle(page);
        return page.getByRole('status').filter({ hasText: 'gamm' }).isVisible();
      }, 'an answer');
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

    it('says so, and shows the packages as soon as they are there', async () => {
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

  describe('while what it needs is away', () => {
    const suite = useService(
      () => packagesNamed(['alpha', 'beta', 'gamma']),
      () => ({ CACHE_MAX_BYTES: '0' }),
    );

    it('says that the search engine does not answer, and goes on by itself when it does', async () => {
      const page = await browser.open(suite.service.url);
      await waitUntilIdle(page);
      const { elasticsearch } = await engines();
      await elasticsearch.pause();
      try {
        await page.keyboard.type('beta');
        await page
          .getByRole('alert')
          .filter({ hasText: 'The search engine does not answer at the moment.' })
          .waitFor();
        await screenshot(page, 'unavailable');
      } finally {
        await elasticsearch.resume();
      }
      await waitForText(page, '1 package with “beta” in the name.');
    });

    it('says that the service cannot be reached, and goes on by itself when it can', async () => {
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
