import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { sampleNames } from '../test/fixtures/generated-dataset.js';
import { median } from '../test/fixtures/statistics.js';
import { measureRebuild } from './changed-snapshot.js';
import { withEngines } from './engines.js';
import { exitByGoals, report } from './goals.js';
import { load, startRebuildable, uncachedEnv } from './load.js';
import { BaselineClient } from './measure.js';
import type { ServerProcess } from './processes.js';
import { searchP99 } from './search-p99.js';

/**
 * `npm run bench -- export` measures `/export`: memory of the server with fast and slow readers, searches beside it, and that the
 * file is a dataset without changes. The exit code is 1 if a goal was missed.
 */

const { values } = parseArgs({ options: { names: { type: 'string', default: '1000000' } } });
const NAMES = Number(values.names);

/** Bytes a second of a reader that is slow, and of one that is read beside searches. */
const SLOW_RATE = 100_000;
const USUAL_RATE = 5_000_000;
/** How long the slow reader reads, in milliseconds. */
const SLOW_MS = 60_000;
const ROUNDS = 5;
/** Pause of a reader, in milliseconds. */
const STEP_MS = 20;

/** Reads an export at a rate until it ends or `isOver` says so. */
async function readAt(url: string, rate: number, isOver: () => boolean): Promise<void> {
  const response = await fetch(`${url}/export?format=csv`, { headers: { 'Accept-Encoding': 'identity' } });
  if (response.body === null || !response.ok) throw new Error(`/export: ${response.status}`);
  const began = performance.now();
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += (chunk as Uint8Array).length;
    while (!isOver() && (bytes * 1000) / rate > performance.now() - began) await pause(STEP_MS);
    if (isOver()) return;
  }
}

/** The largest memory of a server while something happens. */
async function peakDuring(service: ServerProcess, work: Promise<void>): Promise<number> {
  let peak = 0;
  const sampler = setInterval(
    () => void service.megabytes().then((now) => (peak = Math.max(peak, now))),
    100,
  );
  await work.finally(() => clearInterval(sampler));
  return peak;
}

await withEngines(async ({ elasticsearch, input }) => {
  const names = await sampleNames(NAMES);
  const env = uncachedEnv(elasticsearch.url);
  const loaded = await load(NAMES, { env, folder: input });
  await loaded.service.stop();
  const path = join(input, 'exported.csv');
  // A fresh process: one that has loaded keeps memory.
  const service = await startRebuildable(path, { ...env, REGISTRY_SLUG: loaded.slug });
  const client = new BaselineClient(service.url, 64);
  try {
    await searchP99(client, names);
    const before = await service.megabytes();
    const slow = await peakDuring(
      service,
      (async () => {
        const end = performance.now() + SLOW_MS;
        await readAt(service.url, SLOW_RATE, () => performance.now() > end);
      })(),
    );
    report('export to a reader at 100 KB/s: additional memory, megabytes', slow - before, 20);

    const ratios: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const idle = await searchP99(client, names);
      const over = new AbortController();
      const reader = (async () => {
        while (!over.signal.aborted) await readAt(service.url, USUAL_RATE, () => over.signal.aborted);
      })();
      ratios.push((await searchP99(client, names)) / idle);
      over.abort();
      await reader;
    }
    report('searches beside an export at 5 MB/s: p99 ÷ idle, median', median(ratios), 2);
    console.log(`  rounds: ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`);

    const beforeFast = await service.megabytes();
    const began = performance.now();
    const fast = await peakDuring(
      service,
      (async () => {
        const { body } = await fetch(`${service.url}/export?format=csv`);
        if (body === null) throw new Error('/export has no body');
        await pipeline(Readable.fromWeb(body), createWriteStream(path));
      })(),
    );
    console.log(`  whole export: ${((performance.now() - began) / 1000).toFixed(1)} s`);
    report('export to a fast reader: additional memory, megabytes', fast - beforeFast, 20);
    await measureRebuild(service);
    const { count } = (await (await fetch(`${service.url}/changes`)).json()) as { count: number };
    report('changes after loading the exported file', count, 0);
  } finally {
    await client.close();
    await service.stop();
  }
});
exitByGoals();
