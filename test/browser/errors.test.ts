import { expect } from 'chai';
import type { Page } from 'playwright-core';
import {
  expectAccessible,
  holdBack,
  names,
  recordRequests,
  respond,
  screenshot,
  searchBox,
  waitForAlert,
  waitForText,
  waitUntilIdle,
  useBrowser,
  type Respond,
} from './browser.js';
import { datasetServer, heldBack, type DatasetServer } from '../support/dataset-server.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { EngineLink } from '../support/engine-link.js';
import { engines } from '../support/engines.js';
import { startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const COUNTDOWN = /^Retrying in (\d+) seconds?\.$/;

const packages = packagesNamed(['alpha', 'beta', 'gamma']);

const UNEXPECTED = 'An unexpected response arrived';

const json = (body: unknown): Respond => ({ contentType: 'application/json', body: JSON.stringify(body) });
const problem = (status: number, body: string): Respond => ({
  status,
  contentType: 'application/problem+json',
  body,
});

const ENTRY = { no: 1, name: 'beta', version: '1', url: 'https://registry.example/beta', rank: 0 };

/** What proxies, captive portals and caches send in the place of the service, and the error that the page shows. */
const RESPONSES: readonly (readonly [what: string, response: Respond, words: string])[] = [
  ['a login page', { contentType: 'text/html', body: '<!doctype html><title>Sign in</title>' }, UNEXPECTED],
  ['an empty body', { contentType: 'application/json', body: '' }, UNEXPECTED],
  ['no content', { status: 204 }, UNEXPECTED],
  [
    'a body that was cut off',
    { contentType: 'application/json', body: '{"query":"beta","page":2,"results":[{"na' },
    UNEXPECTED,
  ],
  ['null', json(null), UNEXPECTED],
  ['another object', json({ total: 1, source: 1 }), UNEXPECTED],
  ['a list', json([ENTRY]), UNEXPECTED],
  [
    'the results of another request',
    json({ query: 'other', page: 9, total: 1, results: [ENTRY] }),
    UNEXPECTED,
  ],
  [
    'results that are no packages',
    json({ query: 'beta', page: 2, total: 2, results: [ENTRY, { ...ENTRY, url: null }] }),
    UNEXPECTED,
  ],
  [
    'a problem with another detail',
    problem(500, '{"detail":{"a":1}}'),
    'The service responded with status 500.',
  ],
  ['a problem that is null', problem(403, 'null'), 'The service responded with status 403.'],
  [
    'a problem that is not JSON',
    problem(502, '<h1>Bad gateway</h1>'),
    'The service responded with status 502.',
  ],
  // The last one is not retried: no retry meets the next step of a test.
  ['a problem without detail', problem(400, '{"code":"toString"}'), 'The service responded with status 400.'],
];

/** The remaining seconds that the page shows. */
async function countdown(page: Page): Promise<number> {
  const timer = page.getByRole('timer').filter({ hasText: COUNTDOWN });
  return Number(COUNTDOWN.exec((await timer.textContent()) ?? '')?.[1]);
}

/** The wait until the next retry, as the page shows it. */
function waitText(page: Page, text: string): Promise<void> {
  return page.getByRole('timer').filter({ hasText: text }).waitFor();
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
      expect(await countdown(page)).to.be.within(1, 2);
      await expectAccessible(page);
      await screenshot(page, 'initializing');
      origin.release();
      await page.getByRole('link', { name: 'gamma' }).waitFor();
      await page.getByText('3 packages').waitFor();
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
      for (const [what, response, words] of RESPONSES) {
        const restore = await respond(page, '**/search?q=beta&*', response);
        await searchBox(page).fill('beta');
        await waitForAlert(page, words);
        await waitUntilIdle(page);
        expect(await names(page), what).to.deep.equal([]);
        expect(await page.getByRole('status').textContent(), what).to.equal('');
        if (what === 'a login page') {
          await expectAccessible(page);
          await screenshot(page, 'unexpected');
        }
        await restore();
        await searchBox(page).fill('alpha');
        await waitForText(page, '1 package with “alpha” in the name.');
        expect(await page.getByRole('alert').isVisible()).to.equal(false);
      }
    });

    it('replace the previous page of packages', async () => {
      const page = await open('/');
      for (const [what, response, words] of RESPONSES) {
        const restore = await respond(page, '**/browse?page=2&*', response);
        await page.getByRole('link', { name: 'Next page' }).click();
        await waitForAlert(page, words);
        await waitUntilIdle(page);
        expect(await names(page), what).to.deep.equal([]);
        await restore();
        await page.goBack();
        await page.getByText('Page 1 of').waitFor();
      }
    });

    it('replace a list that is not complete, until the retry', async () => {
      const page = await open('/?q=package&limit=500');
      await page.clock.install();
      const restore = await respond(page, '**/search?*after=*', json(null));
      await page.getByRole('link', { name: 'Show up to 1,000' }).click();
      await page.clock.runFor(100);
      await waitForAlert(page, UNEXPECTED);
      expect(await names(page)).to.deep.equal([]);
      await restore();
      await page.clock.runFor(10_100);
      await waitForText(page, '600 packages with “package” in the name.');
      expect(await names(page)).to.have.length(600);
    });

    it('name a new snapshot, and begin again with it', async () => {
      const page = await open('/?q=package&limit=500');
      await page.clock.install();
      const detail = 'snapshot is neither the current nor the previous one';
      const restore = await respond(page, '**/search?*after=*', problem(410, JSON.stringify({ detail })));
      await page.getByRole('link', { name: 'Show up to 1,000' }).click();
      await page.clock.runFor(100);
      await waitForAlert(page, 'The list of packages has been updated meanwhile.');
      await restore();
      await page.clock.runFor(10_100);
      await waitForText(page, '600 packages with “package” in the name.');
    });

    it('are not shown if only the snapshot bar is concerned', async () => {
      const page = await browser.open('about:blank');
      for (const [what, response] of RESPONSES) {
        await respond(page, '**/stats', response);
        await page.goto(`${suite.service.url}/?page=2`);
        await waitUntilIdle(page);
        expect(await page.getByRole('complementary').textContent(), what).to.equal('');
        expect(await names(page), what).to.have.length(100);
      }
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

    it('count down to the retry that the service states, or else for ten seconds', async () => {
      const page = await open('/?q=alpha');
      await page.clock.install();
      await page.clock.pauseAt(Date.now() + 60_000);
      const type = async (query: string) => {
        await searchBox(page).fill(query);
        await page.clock.runFor(100);
      };
      for (const [retryAfter, seconds] of [
        ['soon', 10],
        ['', 10],
        ['0', 10],
        ['90', 90],
        ['86400', 3600],
      ] as const) {
        const headers = { 'Retry-After': retryAfter };
        const restore = await respond(page, '**/search?q=beta&*', { status: 503, headers, body: '' });
        await type('beta');
        await waitText(page, `Retrying in ${seconds.toLocaleString('en')} seconds.`);
        await restore();
        await page.clock.runFor(seconds * 1000 + 2000);
        await waitForText(page, '1 package with “beta” in the name.');
        await type('alpha');
        await waitForText(page, '1 package with “alpha” in the name.');
      }
    });
  });
});
