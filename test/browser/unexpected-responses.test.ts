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
import { packagesNamed } from '../support/datasets.js';
import { useService } from '../support/service.js';

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
  ['another object', json({ status: 'constructor', total_packages: -1, source: 1 }), UNEXPECTED],
  ['a list', json([ENTRY]), UNEXPECTED],
  [
    'the results of another request',
    json({ query: 'other', page: 9, from: 'a', to: 'b', results: [ENTRY] }),
    UNEXPECTED,
  ],
  [
    'results that are no packages',
    json({ query: 'beta', page: 2, results: [ENTRY, { ...ENTRY, url: null }] }),
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

/** The wait until the next retry, as the page shows it. */
function waitText(page: Page, text: string): Promise<void> {
  return page.getByRole('timer').filter({ hasText: text }).waitFor();
}

describe('The search page with unexpected responses', function () {
  this.timeout(60_000);
  const suite = useService(() =>
    packagesNamed(['alpha', 'beta', ...Array.from({ length: 1200 }, (_, i) => `package-${1000 + i}`)]),
  );
  const browser = useBrowser();
  const open = (path: string) => browser.show(suite.service.url + path);

  it('shows an error instead of the results of the previous query', async () => {
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
    }
  });

  it('shows an error instead of the previous page of packages, and recovers', async () => {
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

  it('keeps its results if the next response is unexpected, and shows the error in view', async () => {
    const page = await open('/?q=package&limit=500');
    const more = page.getByRole('button', { name: 'Show more' });
    for (const [what, response, words] of RESPONSES) {
      const restore = await respond(page, '**/search?*after=*', response);
      await more.click();
      await (await waitForAlert(page, words)).isVisible();
      expect(await more.getAttribute('aria-disabled'), what).to.equal(null);
      expect(await names(page), what).to.have.length(500);
      const box = await page.locator('#error-banner').boundingBox();
      expect(box?.y, 'the banner is in the viewport').to.be.within(0, 800);
      if (what === 'a login page') await screenshot(page, 'unexpected-more');
      await restore();
    }
    await more.click();
    await waitForText(page, 'The first 1,000 of 1,200 packages');
    expect(await page.getByRole('alert').isVisible()).to.equal(false);
  });

  it('requests the next results once if the button is pressed again, and moves to the results on Enter', async () => {
    const page = await open('/?q=package&limit=500');
    const release = await holdBack(page, '**/search?*after=*');
    const sent = recordRequests(page);
    const more = page.getByRole('button', { name: 'Show more' });
    await more.dblclick();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Space');
    await screenshot(page, 'more-pending');
    release();
    await waitForText(page, 'The first 1,000 of 1,200 packages');
    expect(sent.filter((path) => path.includes('after='))).to.have.length(1);
    expect(await names(page)).to.have.length(1000);

    const releaseLast = await holdBack(page, '**/search?*after=*');
    await more.click();
    await searchBox(page).press('Enter');
    releaseLast();
    await waitForText(page, '1,200 packages');
    expect(new Set(await names(page)).size).to.equal(1200);
    expect(sent.filter((path) => path.includes('after='))).to.have.length(2);
  });

  it('shows that the service is unreachable if its health is unexpected', async () => {
    const page = await browser.open('about:blank');
    for (const [what, response] of RESPONSES) {
      await respond(page, '**/health', response);
      await respond(page, '**/stats', response);
      await page.goto(`${suite.service.url}/?page=2`);
      await waitUntilIdle(page);
      expect(await page.getByRole('complementary').textContent(), what).to.equal(
        'The service is unreachable',
      );
      expect(await names(page), what).to.have.length(100);
    }
    await screenshot(page, 'unexpected-health');
  });

  it('shows an error if a response never ends', async () => {
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

  it('waits longer before each retry if the service does not state when, and until its date otherwise', async () => {
    const page = await open('/?q=alpha');
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    const search = '**/search?q=beta&*';
    const type = async (query: string) => {
      await searchBox(page).fill(query);
      await page.clock.runFor(100);
    };
    const failing = (headers: Record<string, string>) =>
      respond(page, search, { status: 503, headers, body: '' });
    for (const retryAfter of ['0', '-1', 'soon', '', 'Sun, 06 Nov 1994 08:49:37 GMT']) {
      const restore = await failing({ 'Retry-After': retryAfter });
      await type('beta');
      for (const seconds of [5, 10, 20, 40, 60, 60]) {
        await waitText(page, `Retrying in ${seconds} seconds.`);
        await page.clock.runFor(seconds * 1000 + 100);
      }
      await waitText(page, 'Retrying in 60 seconds.');
      await restore();
      await type('alpha');
      await waitForText(page, '1 package with “alpha” in the name.');
    }
    const now = Date.parse('2030-01-01T00:00:00Z');
    const date = (ms: number) => new Date(ms).toUTCString();
    const restore = await failing({ Date: date(now), 'Retry-After': date(now + 90_000) });
    await type('beta');
    await waitText(page, 'Retrying in 90 seconds.');
    await screenshot(page, 'retry-date');
    await restore();
    await page.clock.runFor(90_100);
    await waitForText(page, '1 package with “beta” in the name.');
  });
});
