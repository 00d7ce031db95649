import { accessSync, constants, mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import { expect } from 'chai';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';

/** Where pictures of the page go: to look at after a run, never to compare with. */
const PICTURES = fileURLToPath(new URL('../../test-results/screenshots/', import.meta.url));

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** It talks to the tests' own servers alone, and runs as root where CI does. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** The Chromium of this machine. @throws where there is none: there is no test of the page without a real browser. */
function findChromium(): string {
  const { CHROMIUM, PATH = '' } = process.env;
  const candidates = PATH.split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)));
  const found = (CHROMIUM === undefined ? candidates : [CHROMIUM]).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (found !== undefined) return found;
  throw new Error(
    `no Chromium at ${CHROMIUM ?? `the PATH (${NAMES.join(', ')})`}: install it (Debian: apt-get install chromium) or set CHROMIUM to its program`,
  );
}

/** What `useBrowser` gives to a suite. */
export interface SuiteBrowser {
  /**
   * Opens a window of its own: nothing is kept from another one.
   * @param script runs in the page before its own ones.
   */
  open(url: string, options?: BrowserContextOptions, script?: () => void): Promise<Page>;
  /** Takes what the pages of this test have thrown, and what was kept from them by their policy. */
  complaints(): string[];
}

/**
 * Gives the suite that calls it a real browser. After each test its windows are closed, and the test fails where a page has
 * thrown an error or broken its own policy.
 */
export function useBrowser(): SuiteBrowser {
  let browser: Browser | undefined;
  const collected: string[] = [];
  const complaints = () => collected.splice(0);
  before(async function () {
    this.timeout(60_000);
    browser = await chromium.launch({ executablePath: findChromium(), args: FLAGS });
  });
  afterEach(async () => {
    await Promise.all((browser?.contexts() ?? []).map((context) => context.close()));
    expect(complaints(), 'complaints of the browser').to.deep.equal([]);
  });
  after(() => browser?.close());
  return {
    open: async (url, options = {}, script) => {
      if (browser === undefined) throw new Error('the browser of this suite is not there outside its tests');
      const context = await browser.newContext({ viewport: { width: 1000, height: 800 }, ...options });
      if (script !== undefined) await context.addInitScript(script);
      const page = await context.newPage();
      page.on('pageerror', (error) => collected.push(error.message));
      page.on('console', (message) => {
        // That an answer is 429 or 503, or does not come, is no error of the page.
        const isAnswer = message.text().startsWith('Failed to load resource');
        if (message.type() === 'error' && !isAnswer) collected.push(message.text());
      });
      await page.goto(url);
      return page;
    },
    complaints,
  };
}

/** Waits until the page shows what its address says. */
export async function waitUntilIdle(page: Page): Promise<void> {
  await page.locator('#packages[aria-busy=false]').waitFor({ state: 'attached' });
}

/** Waits until the page says this in its line about the results. */
export async function waitForText(page: Page, text: string | RegExp): Promise<void> {
  await page.getByRole('status').filter({ hasText: text }).waitFor();
}

/** The names that are shown, in order. */
export function names(page: Page): Promise<string[]> {
  return page.locator('.packages .name').allTextContents();
}

/** Where the keyboard is: the name of the package, or the id of the element. */
export function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const { activeElement } = document;
    return activeElement?.querySelector('.name')?.textContent ?? activeElement?.id ?? '';
  });
}

/** Keeps a picture of what can be seen. */
export async function screenshot(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

/** Fails where axe finds that the page, as it is now, keeps somebody out. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  expect(found).to.deep.equal([]);
}
