import { expect } from 'chai';
import type { CDPSession, Page } from 'playwright-core';
import { searchBox, useBrowser, waitForText, waitUntilIdle } from './browser.js';
import { bundledPackages } from '../support/datasets.js';
import { useService } from '../support/service.js';

/** "Slow 4G" of Chromium's developer tools: milliseconds, and bytes per second. */
const SLOW_4G = { latency: 562.5, downloadThroughput: 188_744, uploadThroughput: 86_400 };
const CPU_SLOWDOWN = 4;

const FIRST_RESULT_GOAL_MS = 2500;
const WIRE_GOAL_BYTES = 40_000;
const VISITS = 5;

/** Counts the bytes of all responses, with their headers. */
function countBytes(client: CDPSession): { total: number } {
  const bytes = { total: 0 };
  client.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes.total += encodedDataLength));
  return bytes;
}

/** The time from the start of the navigation until the first frame with results, in milliseconds. */
async function firstResultMs(page: Page): Promise<number> {
  const shown = await page.waitForFunction(
    () => document.querySelector('.packages a') !== null && performance.now(),
  );
  return Number(await shown.jsonValue());
}

describe('The search page on a slow network', function () {
  this.timeout(60_000);
  const packages = bundledPackages()
    .slice(0, 20_000)
    .map((entry, i) => ({ ...entry, weight: (i * 7919) % 1_000_003 }));
  const suite = useService(() => packages);
  const browser = useBrowser();

  /** An empty page whose next visits begin without a cache. */
  async function open(): Promise<{ page: Page; client: CDPSession }> {
    const page = await browser.open('about:blank');
    const client = await page.context().newCDPSession(page);
    await client.send('Network.enable');
    return { page, client };
  }

  it('shows the first result of a search in its URL in less than 2.5 seconds on a slow phone', async () => {
    const times: number[] = [];
    for (let visit = 0; visit < VISITS; visit++) {
      const { page, client } = await open();
      await client.send('Network.emulateNetworkConditions', { offline: false, ...SLOW_4G });
      await client.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN });
      await page.goto(`${suite.service.url}/?q=lib`, { waitUntil: 'commit' });
      times.push(await firstResultMs(page));
    }
    console.log(`      first result: ${times.map((ms) => ms.toFixed(0)).join(', ')} ms`);
    // What else runs on the machine only adds to it.
    expect(Math.min(...times)).to.be.lessThan(FIRST_RESULT_GOAL_MS);
  });

  it('needs less than 40 KB for a visit and its first search, headers included', async () => {
    const { page, client } = await open();
    const bytes = countBytes(client);
    await page.goto(suite.service.url);
    await waitUntilIdle(page);
    await searchBox(page).fill('lib');
    await waitForText(page, /^The first 50 of [\d,]+ packages with “lib”/);
    await page.waitForTimeout(1000);
    console.log(`      sent: ${bytes.total} bytes`);
    expect(bytes.total).to.be.within(5000, WIRE_GOAL_BYTES);
  });
});
