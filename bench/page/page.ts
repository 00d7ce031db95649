import { parseArgs } from 'node:util';
import { generatedPackages } from '../../test/fixtures/generated-dataset.js';
import { makeQueries } from '../../test/fixtures/queries.js';
import { median, percentile } from '../../test/fixtures/statistics.js';
import { launchChromium, waitUntilIdle } from '../../test/browser/browser.js';
import { withEngines } from '../engines.js';
import { exitByGoals, report } from '../goals.js';
import { load, uncachedEnv } from '../load.js';

/**
 * `npm run bench -- page` measures the search page in the installed Chromium: visits, visits on a slow phone, and
 * typing. The exit code is 1 if a goal was missed.
 */

const { values } = parseArgs({ options: { names: { type: 'string', default: '1000000' } } });
const NAMES = Number(values.names);

const VISITS = 7;
const SLOW_VISITS = 5;
/** "Slow 4G" of Chromium's developer tools: milliseconds, and bytes per second. */
const SLOW_4G = { latency: 562.5, downloadThroughput: 188_744, uploadThroughput: 86_400 };
const CPU_SLOWDOWN = 4;

const ROUNDS = 3;
/** Queries per kind and round, for each of five kinds, and the maximum number of letters typed per query. */
const QUERIES_PER_KIND = 5;
const MOST_KEYSTROKES = 12;
/** Pause between two letters of a fast typist. */
const TYPING_MS = 150;

/** Times measured by a script in the page, in milliseconds. */
interface Measured {
  /** From the start of the navigation until the first response was rendered. */
  readyMs: number;
  /** From each key until the results for the text in the box were rendered. */
  keystrokesMs: number[];
}

/** Runs in the page before its own scripts; has no named functions, which the compiler would wrap. */
function measure(): void {
  const measured: Measured = { readyMs: 0, keystrokesMs: [] };
  Object.assign(globalThis, { measured });
  let pressedAt: number | undefined;
  addEventListener('keydown', ({ timeStamp }) => (pressedAt = timeStamp), { capture: true });
  new MutationObserver(() => {
    if (measured.readyMs === 0 && document.querySelector('.packages a') !== null) {
      requestAnimationFrame(() => (measured.readyMs = performance.now()));
    }
    const typed = document.querySelector('input')?.value.trim() ?? '';
    const status = document.querySelector('#status')?.textContent ?? '';
    const from = pressedAt;
    if (from === undefined || !status.includes(`“${typed}”`)) return;
    pressedAt = undefined;
    requestAnimationFrame(() => measured.keystrokesMs.push(performance.now() - from));
  }).observe(document, { childList: true, characterData: true, subtree: true });
}

const readMeasured = () => (globalThis as unknown as { measured: Measured }).measured;

const browser = await launchChromium();

/** Opens a window without a cache. */
async function openWindow() {
  const context = await browser.newContext({ viewport: { width: 1000, height: 800 } });
  await context.addInitScript(measure);
  return context.newPage();
}

/** The time until a visit shows its first results, in milliseconds. */
async function visit(url: string, isSlow = false): Promise<number> {
  const page = await openWindow();
  if (isSlow) {
    const client = await page.context().newCDPSession(page);
    await client.send('Network.enable');
    await client.send('Network.emulateNetworkConditions', { offline: false, ...SLOW_4G });
    await client.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN });
  }
  await page.goto(url, { waitUntil: 'commit' });
  await page.waitForFunction(() => (globalThis as unknown as { measured: Measured }).measured.readyMs > 0);
  const { readyMs } = await page.evaluate(readMeasured);
  await page.context().close();
  return readyMs;
}

async function visits(count: number, url: string, isSlow?: boolean): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) times.push(await visit(url, isSlow));
  console.log(`  visits: ${times.map((ms) => ms.toFixed(0)).join(', ')} ms`);
  return times;
}

/** Types queries. @returns p95 of the time from a keystroke to its results for each round, in milliseconds. */
async function type(url: string, names: readonly string[]): Promise<number[]> {
  const page = await openWindow();
  await page.goto(url);
  const queries = makeQueries(names, QUERIES_PER_KIND * ROUNDS);
  const p95s: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = (await page.evaluate(readMeasured)).keystrokesMs.length;
    let letters = 0;
    for (const { q } of queries.slice(
      (round * queries.length) / ROUNDS,
      ((round + 1) * queries.length) / ROUNDS,
    )) {
      await page.getByRole('searchbox').fill('');
      await waitUntilIdle(page);
      const typed = Array.from(q).slice(0, MOST_KEYSTROKES);
      letters += typed.length - 1;
      await page.keyboard.type(typed.join(''), { delay: TYPING_MS });
      await waitUntilIdle(page);
    }
    const times = (await page.evaluate(readMeasured)).keystrokesMs.slice(before);
    report(
      'share of keystrokes that were measured',
      times.length / letters,
      0.9,
      times.length >= letters * 0.9,
    );
    p95s.push(percentile(times, 0.95));
  }
  console.log(`  rounds: ${p95s.map((ms) => ms.toFixed(0)).join(', ')} ms`);
  return p95s;
}

await withEngines(async ({ elasticsearch, input }) => {
  const names: string[] = [];
  for await (const { name, no } of generatedPackages(NAMES)) if (no % 100 === 0) names.push(name);
  const { service } = await load(NAMES, { env: uncachedEnv(elasticsearch.url), folder: input });
  try {
    report('first results after a visit, median, ms', median(await visits(VISITS, service.url)), 1000);
    // Other programs on the machine only add to it.
    const slow = await visits(SLOW_VISITS, `${service.url}/?q=lib`, true);
    report('first result of a search in the URL on a slow phone, fastest, ms', Math.min(...slow), 2500);
    const p95 = median(await type(service.url, names));
    report('from keystroke to results, p95, median of the rounds, ms', p95, 100);
  } finally {
    await browser.close();
    await service.stop();
  }
});
exitByGoals();
