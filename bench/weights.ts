import { execFile } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { generatedPackages, sampleNames, writeDataset } from '../test/fixtures/generated-dataset.js';
import { makeQueries } from '../test/fixtures/queries.js';
import { percentile } from '../test/fixtures/statistics.js';
import { measureRebuild } from './changed-snapshot.js';
import { withEngines } from './engines.js';
import { exitByGoals, report } from './goals.js';
import { load, startRebuildable, uncachedEnv } from './load.js';
import { BaselineClient, interleaveRounds, medianRatio } from './measure.js';
import type { ServerProcess } from './processes.js';

/**
 * `npm run bench -- weights` measures what a document of weights costs: joining it, searches by weight relative to those in name
 * order, and comparing two snapshots in which every weight differs. The exit code is 1 if a goal was missed.
 */

const { values } = parseArgs({
  options: { names: { type: 'string', default: '1000000' }, rows: { type: 'string', default: '5000000' } },
});
const NAMES = Number(values.names);
/** Rows of weights that are joined to as many names, without loading them. */
const ROWS = Number(values.rows);

const ROUNDS = 5;
const QUERIES_PER_KIND = 100;

/** Writes weights by a power law; half of the names have none. @param more is added to each. */
async function writeWeights(path: string, count: number, more: number): Promise<void> {
  async function* lines() {
    yield 'name,weight\n';
    for await (const { no, name } of generatedPackages(count)) {
      const weight = no % 2 === 0 ? 0 : Math.floor(1e9 / ((no * 7919) % count || 1));
      yield `${name},${weight + more}\n`;
    }
  }
  await pipeline(Readable.from(lines()), createWriteStream(path));
}

interface Joined {
  /** Processor time: other processes do not matter. */
  seconds: number;
  megabytes: number;
}

/** Reads a dataset, with or without weights, in a process with the heap of a rebuild. */
async function joinIn(...files: string[]): Promise<Joined> {
  const args = ['--import', 'tsx', '--max-old-space-size=128', 'bench/join-weights.ts', ...files];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  console.log(`  ${stdout.trim()}`);
  return JSON.parse(stdout) as Joined;
}

/** @param rowSeconds time of loading one row. */
async function measureJoin(folder: string, rowSeconds: number): Promise<void> {
  const [dataset, weights] = [join(folder, 'many.csv'), join(folder, 'many-weights.csv')];
  await writeDataset(dataset, ROWS);
  await writeWeights(weights, ROWS, 0);
  const plain = await joinIn(dataset);
  const joined = await joinIn(dataset, weights);
  const percent = ((joined.seconds - plain.seconds) * 100) / (rowSeconds * ROWS);
  report(`${ROWS} weights joined to ${ROWS} names: share of the load, percent`, percent, 20);
  report('the same: additional memory, megabytes', joined.megabytes - plain.megabytes, 200);
}

async function measureSearches(service: ServerProcess): Promise<void> {
  const client = new BaselineClient(service.url, 1);
  const queries = makeQueries(await sampleNames(NAMES), QUERIES_PER_KIND);
  for (const limit of [20, 250]) {
    const path = (q: string, sort: string) =>
      `/search?q=${encodeURIComponent(q)}&limit=${limit}&sort=${sort}`;
    const rounds = await interleaveRounds(
      queries,
      [({ q }) => client.get(path(q, 'weight')), ({ q }) => client.get(path(q, 'name'))],
      ROUNDS,
    );
    for (const [p, goal] of [
      [0.5, 1.3],
      [0.99, 3],
    ] as const) {
      const ratio = medianRatio(rounds, (times) => percentile(times, p));
      report(`sort=weight ÷ name order, limit ${limit}: p${p * 100}`, ratio, goal);
    }
  }
  await client.close();
}

await withEngines(async ({ elasticsearch, input }) => {
  const weights = join(input, 'weights.csv');
  await writeWeights(weights, NAMES, 0);
  const env = { ...uncachedEnv(elasticsearch.url), WEIGHTS_URL: pathToFileURL(weights).href };
  const loaded = await load(NAMES, { env, folder: input, keep: true });
  await loaded.service.stop();
  const dataset = join(input, `names-${NAMES}.csv`);
  const service = await startRebuildable(dataset, { ...env, REGISTRY_SLUG: loaded.slug });
  try {
    await measureSearches(service);
    const { comparing: none } = (await measureRebuild(service)).phases;
    await writeWeights(weights, NAMES, 1);
    const { comparing: all } = (await measureRebuild(service)).phases;
    console.log(`  comparing: ${none.seconds.toFixed(1)} s, ${all.seconds.toFixed(1)} s`);
    report('comparing, every weight changed ÷ none', all.seconds / none.seconds, 1.5);
    const { count } = (await (await fetch(`${service.url}/changes`)).json()) as { count: number };
    report('changes', count, 0);
  } finally {
    await service.stop();
  }
  await rm(dataset);
  await measureJoin(input, loaded.seconds / NAMES);
});
exitByGoals();
