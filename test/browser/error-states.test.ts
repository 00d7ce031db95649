import { expect } from 'chai';
import type { Page } from 'playwright-core';
import {
  expectAccessible,
  recordRequests,
  screenshot,
  searchBox,
  waitForAlert,
  waitForText,
  useBrowser,
} from './browser.js';
import { datasetServer, heldBack, type DatasetServer } from '../support/dataset-server.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { EngineLink } from '../support/engine-link.js';
import { engines } from '../support/engines.js';
import { startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const COUNTDOWN = /^Retrying in (\d+) seconds?\.$/;

const packages = packagesNamed(['alpha', 'beta', 'gamma']);

/** The remaining seconds that the page shows. */
async function countdown(page: Page): Promise<number> {
  const timer = page.getByRole('timer').filter({ hasText: COUNTDOWN });
  return Number(COUNTDOWN.exec((await timer.textContent()) ?? '')?.[1]);
}

describe('The search page', function () {
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

    it('shows an error with a countdown, and retries automatically', async () => {
      const page = await browser.show(suite.service.url);
      await useUpLimit();
      await page.keyboard.type('alpha');
      const trouble = await waitForAlert(page, 'Too many requests from your address.');
      const seconds = await countdown(page);
      expect(seconds).to.be.within(1, WINDOW_SECONDS);
      await expectAccessible(page);
      await screenshot(page, 'limited');
      await waitFor(
        async () => !(await trouble.isVisible()) || (await countdown(page)) < seconds,
        'the countdown',
      );
      await waitForText(page, '1 package with “alpha” in the name.');
      expect(await trouble.isVisible()).to.equal(false);
    });

    it('waits for longer pauses in typing if nothing of the budget is left', async () => {
      const page = await browser.show(suite.service.url);
      await useUpLimit();
      await searchBox(page).fill('gamm');
      await waitForAlert(page, 'Too many requests from your address.');
      const sent = recordRequests(page);
      // Each letter comes within the longer pause.
      await searchBox(page).pressSequentially('axyz', { delay: 100 });
      expect(sent.filter((path) => path.startsWith('/search?q='))).to.deep.equal([]);
    });
  });

  describe('during a cold start', () => {
    const origin = heldBack(() => toCsv(packages));
    let dataset: DatasetServer;
    let service: Service;

    before(async () => {
      dataset = await datasetServer(origin.listener);
      service = await startService({ DATASET_URL: dataset.url });
    });
    after(async () => {
      origin.release();
      await service.end();
      await dataset.close();
    });

    it('shows an error, and the packages as soon as they are loaded', async () => {
      const page = await browser.show(service.url);
      const trouble = await waitForAlert(page, 'The first snapshot is still being loaded.');
      await page.getByText('The service is loading its first snapshot').waitFor();
      expect(await countdown(page)).to.be.within(1, 2);
      await expectAccessible(page);
      await screenshot(page, 'initializing');
      origin.release();
      await page.getByRole('link', { name: 'gamma' }).waitFor();
      expect(await trouble.isVisible()).to.equal(false);
    });
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

    it('shows that the search engine does not respond, and retries automatically', async () => {
      const page = await browser.show(suite.service.url);
      link.delayMs = 60_000;
      try {
        await page.keyboard.type('beta');
        await waitForAlert(page, 'The search engine does not respond.');
        await screenshot(page, 'unavailable');
      } finally {
        link.delayMs = 0;
        link.cut();
      }
      await waitForText(page, '1 package with “beta” in the name.');
    });

    it('shows that the service cannot be reached, and retries automatically', async () => {
      const page = await browser.show(suite.service.url);
      await page.clock.install();
      await page.context().setOffline(true);
      await page.keyboard.type('gamma');
      await waitForAlert(page, 'The service cannot be reached.');
      expect(await countdown(page)).to.be.within(1, 5);
      await page.context().setOffline(false);
      await page.clock.fastForward(5000);
      await waitForText(page, '1 package with “gamma” in the name.');
    });
  });
});
