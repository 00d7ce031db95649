import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type axe from 'axe-core';
import { expect } from 'chai';
import {
  chromium,
  type Browser,
  type BrowserContextOptions,
  type Locator,
  type Page,
  type Route,
} from 'playwright-core';

/** Folder of screenshots of the end of each test, for inspection after a run; no test compares them. */
const PICTURES = fileURLToPath(new URL('../../test-results/screenshots/', import.meta.url));

/** The first is Chromium without its own windows: the same pages take a quarter of the processor time. */
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];

/** Chromium connects only to the tests' own servers, and may run as root in CI. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** The path of Chromium on this machine. @throws if there is none: every test needs a real browser. */
function findChromium(): string {
  const { CHROMIUM, PATH = '' } = process.env;
  const inPath = PATH.split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)));
  const found = (CHROMIUM === undefined ? inPath : [CHROMIUM]).find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new Error(
    `Chromium not found at ${CHROMIUM ?? `the PATH (${NAMES.join(', ')})`}: install it (Debian: apt-get install chromium-headless-shell) or set CHROMIUM to its path`,
  );
}

/** Starts a real browser. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), args: FLAGS });
}

/** The browser of a suite. */
export interface SuiteBrowser {
  /**
   * Opens a window that shares no state with others.
   * @param script runs in the page before the page's own scripts.
   */
  open(url: string, options?: BrowserContextOptions, script?: () => void): Promise<Page>;
  /** The same, for a page of the service: waits until it shows the content of its URL. */
  show(url: string, options?: BrowserContextOptions): Promise<Page>;
  /** Removes and returns the errors and the policy violations of the pages of this test. */
  complaints(): string[];
}

/**
 * Starts a real browser for the calling suite. After each test its windows are closed, and the test fails if
 * a page has thrown an error or violated its own policy.
 */
export function useBrowser(): SuiteBrowser {
  let browser: Browser | undefined;
  const collected: string[] = [];
  const complaints = () => collected.splice(0);
  before(async function () {
    this.timeout(60_000);
    browser = await launchChromium();
  });
  afterEach(async function () {
    const contexts = browser?.contexts() ?? [];
    const name = this.currentTest?.fullTitle().replaceAll(/\W+/g, '-');
    await contexts
      .at(-1)
      ?.pages()[0]
      ?.screenshot({ path: join(PICTURES, `${name}.png`) });
    await Promise.all(contexts.map((context) => context.close()));
    expect(complaints(), 'complaints of the browser').to.deep.equal([]);
  });
  after(() => browser?.close());
  const open: SuiteBrowser['open'] = async (url, options = {}, script) => {
    if (browser === undefined) throw new Error('the browser of a suite is available only within its tests');
    const context = await browser.newContext({ viewport: { width: 1000, height: 800 }, ...options });
    if (script !== undefined) await context.addInitScript(script);
    const page = await context.newPage();
    page.on('pageerror', (error) => collected.push(error.message));
    page.on('console', (message) => {
      // A response with 429 or 503, or a missing one, is not an error of the page.
      const isAnswer = message.text().startsWith('Failed to load resource');
      if (message.type() === 'error' && !isAnswer) collected.push(message.text());
    });
    await page.goto(url);
    return page;
  };
  const show: SuiteBrowser['show'] = async (url, options) => {
    const page = await open(url, options);
    await waitUntilIdle(page);
    return page;
  };
  return { open, show, complaints };
}

/** Waits until the page shows the content of its URL. */
export async function waitUntilIdle(page: Page): Promise<void> {
  await page.locator('[aria-busy=false]').waitFor({ state: 'attached' });
}

/** Waits for a text in the status line above the results. */
export async function waitForText(page: Page, text: string | RegExp): Promise<void> {
  await page.getByRole('status').filter({ hasText: text }).waitFor();
}

/** Waits for an error. @returns what shows it. */
export async function waitForAlert(page: Page, text: string): Promise<Locator> {
  const alert = page.getByRole('alert').filter({ hasText: text });
  await alert.waitFor();
  return alert;
}

/** Waits for a heading. */
export function waitForHeading(page: Page, name: string): Promise<void> {
  return page.getByRole('heading', { name }).waitFor();
}

/** The search box. */
export function searchBox(page: Page): Locator {
  return page.getByRole('searchbox');
}

/** The displayed names, in order. */
export function names(page: Page): Promise<string[]> {
  return page.locator('.packages .name').allTextContents();
}

/** Where the packages link to, in order. */
export function hrefs(page: Page): Promise<(string | null)[]> {
  return page.locator('.packages a').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
}

/** Width of the content, in CSS pixels: more than the viewport's if the page scrolls sideways. */
export function contentWidth(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth);
}

/** The path and query of each request from now on. */
export function recordRequests(page: Page): string[] {
  const sent: string[] = [];
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    sent.push(pathname + search);
  });
  return sent;
}

export type Respond = NonNullable<Parameters<Route['fulfill']>[0]>;

/** Answers requests in the place of the service. @param path a glob. @returns a function that stops it. */
export async function respond(page: Page, path: string, response: Respond): Promise<() => Promise<void>> {
  await page.route(path, (route) => route.fulfill(response));
  return () => page.unroute(path);
}

/** Holds the service's responses back. @param path a glob. @returns a function that releases them. */
export async function holdBack(page: Page, path: string): Promise<() => void> {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route(path, async (route) => {
    const response = await route.fetch();
    await released;
    // The page may have aborted the request meanwhile.
    await route.fulfill({ response }).catch(() => undefined);
  });
  return release;
}

/** What has the keyboard focus: the name of the package, or the id of the element. */
export function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const { activeElement } = document;
    return activeElement?.querySelector('.name')?.textContent ?? activeElement?.id ?? '';
  });
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** Items of long lists that are like those before and after them: axe would need seconds for them. */
const MIDDLE_ITEMS = '.packages li:nth-child(n + 10):nth-last-child(n + 10)';

/** Fails if axe finds accessibility violations in the page as it is now. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(
    (exclude) =>
      // The details of what passes would take a fifth of the time.
      (globalThis as unknown as { axe: typeof axe }).axe.run({ exclude }, { resultTypes: ['violations'] }),
    [MIDDLE_ITEMS],
  );
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  expect(found).to.deep.equal([]);
}
