import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { generatedPackages } from '../test/fixtures/generated-dataset.js';
import { makeQueries } from '../test/fixtures/queries.js';
import { integer, pick, seededRandom } from '../test/fixtures/random.js';
import { median, percentile } from '../test/fixtures/statistics.js';
import { withEngines } from './engines.js';
import { exitByGoals, report, timed } from './goals.js';
import { hardPairs } from './hard-pairs.js';
import { load, SECRET, searchPath, similarPath, uncachedEnv } from './load.js';
import { BaselineClient } from './measure.js';
import { ServerProcess } from './processes.js';
import { searchP99 } from './search-p99.js';
import { typo } from './typos.js';

/**
 * `npm run bench -- names` measures look-alikes, exact names, words, walks by `next` and rebuilds, relative to cold searches of
 * the same run. The exit code is 1 if a goal was missed.
 */

const { values } = parseArgs({ options: { names: { type: 'string', default: '1000000' } } });
const NAMES = Number(values.names);

/** Requests of each kind; the kinds take turns. */
const REQUESTS = 700;
const WARM_UP = 50;
const TYPOS = 1000;
const LOOKUP_NAMES = 100;

/** Pairs of words that are expensive to search for, and how often each is searched for. */
const HARD_PAIRS = 60;
const REPETITIONS = 5;

/** A flood of `/similar`: clients and rounds. */
const FLOOD_CLIENTS = 16;
const FLOOD_ROUNDS = 5;

/** Rebuilds while searches are measured. */
const REBUILDS = 3;
const REBUILD_TIMEOUT_MS = 30 * 60_000;
const POLL_MS = 500;

const random = seededRandom(20_261_123);

const lookupPath = (names: readonly string[]) =>
  `/lookup?${names.map((name) => `name=${encodeURIComponent(name)}`).join('&')}`;

async function compareWithSearches(client: BaselineClient, names: readonly string[]): Promise<void> {
  const queries = makeQueries(names, Math.ceil(REQUESTS / 5));
  const kinds = {
    search: () => searchPath(pick(random, queries)),
    similar: () => similarPath(typo(random, pick(random, names))),
    lookup: () => lookupPath(Array.from({ length: LOOKUP_NAMES }, () => pick(random, names))),
  };
  const times: Record<keyof typeof kinds, number[]> = { search: [], similar: [], lookup: [] };
  for (let i = 0; i < WARM_UP + REQUESTS; i++) {
    for (const kind of ['search', 'similar', 'lookup'] as const) {
      const ms = await timed(client.get(kinds[kind]()));
      if (i >= WARM_UP) times[kind].push(ms);
    }
  }
  const p50 = percentile(times.search, 0.5);
  console.log(`cold search: p50 ${p50.toFixed(1)} ms, p99 ${percentile(times.search, 0.99).toFixed(1)} ms`);
  report('/similar, p50 ÷ p50 of cold searches', percentile(times.similar, 0.5) / p50, 10);
  report('/similar, p99 ÷ p50 of cold searches', percentile(times.similar, 0.99) / p50, 30);
  report('/lookup of 100 names, p99 ÷ p50 of cold searches', percentile(times.lookup, 0.99) / p50, 6);
}

/** Words of one name or of two, in any order. */
async function compareWords(client: BaselineClient, names: readonly string[]): Promise<void> {
  const split = names.map((name) => name.split(/[^a-z\d]+/i).filter(({ length }) => length > 1));
  const parts = split.filter(({ length }) => length > 1);
  const wordsPath = (q: string) => `${searchPath({ q })}&match=words`;
  const times: Record<'one' | 'two', number[]> = { one: [], two: [] };
  for (let i = 0; i < WARM_UP + REQUESTS; i++) {
    const words = pick(random, parts);
    const q = pick(random, words);
    const other = pick(random, random() < 0.5 ? words : pick(random, parts));
    const one = await timed(client.get(searchPath({ q })));
    const two = await timed(client.get(wordsPath(`${q} ${other}`)));
    if (i < WARM_UP) continue;
    times.one.push(one);
    times.two.push(two);
  }
  for (const [name, share, goal] of [
    ['p50', 0.5, 1.5],
    ['p99', 0.99, 2],
  ] as const) {
    const ratio = percentile(times.two, share) / percentile(times.one, share);
    report(`two words ÷ contains of one, ${name}`, ratio, goal);
  }
  const worst: number[] = [];
  for (const pair of hardPairs(names, HARD_PAIRS)) {
    const all: number[] = [];
    for (let i = 0; i < REPETITIONS; i++) all.push(await timed(client.get(wordsPath(pair))));
    worst.push(median(all));
  }
  report(`the worst of ${worst.length} hard pairs of words, ms`, Math.max(...worst), 100);
}

async function findTypos(client: BaselineClient, names: readonly string[]): Promise<void> {
  let found = 0;
  for (let i = 0; i < TYPOS; i++) {
    const intended = pick(random, names);
    const text = await client.get(similarPath(typo(random, intended), 5));
    const { results } = JSON.parse(text) as { results: { name: string }[] };
    if (results.some(({ name }) => name === intended)) found++;
  }
  const percent = (found * 100) / TYPOS;
  report('typos whose intended name is in the first five, percent', percent, 95, percent >= 95);
}

async function flood(
  service: ServerProcess,
  names: readonly string[],
  what: string,
  nameOf: () => string,
): Promise<void> {
  const client = new BaselineClient(service.url, 64);
  const ratios: number[] = [];
  for (let round = 0; round < FLOOD_ROUNDS; round++) {
    const idle = await searchP99(client, names);
    let isOver = false;
    const clients = Array.from({ length: FLOOD_CLIENTS }, async () => {
      while (!isOver) await client.get(similarPath(nameOf()));
    });
    ratios.push((await searchP99(client, names)) / idle);
    isOver = true;
    await Promise.all(clients);
  }
  await client.close();
  report(`searches beside a flood of /similar, ${what}: p99 ÷ idle, median`, median(ratios), 3);
  console.log(`  rounds: ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`);
}

/** @throws {Error} after half an hour, longer than any rebuild. */
async function waitUntil(condition: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + REBUILD_TIMEOUT_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await pause(POLL_MS);
  }
}

async function startRebuild(service: ServerProcess): Promise<void> {
  const rebuild = () => fetch(`${service.url}/rebuild?secret=${SECRET}&force=true`);
  // 503 while the previous rebuild is still pruning.
  await waitUntil(async () => (await rebuild()).status === 202, 'a rebuild to start');
}

/** The id of the served snapshot. */
async function snapshotOf(service: ServerProcess): Promise<string | null> {
  return (await fetch(`${service.url}/stats`)).headers.get('X-Snapshot');
}

async function searchDuringRebuilds(service: ServerProcess, names: readonly string[]): Promise<void> {
  const client = new BaselineClient(service.url, 64);
  const ratios: number[] = [];
  for (let round = 0; round < REBUILDS; round++) {
    const idle = await searchP99(client, names);
    const before = await snapshotOf(service);
    await startRebuild(service);
    const flipped = waitUntil(async () => (await snapshotOf(service)) !== before, 'another snapshot');
    ratios.push((await searchP99(client, names, flipped)) / idle);
  }
  await client.close();
  report('searches during a rebuild: p99 ÷ idle, median', median(ratios), 2);
  console.log(`  rounds: ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`);
}

/** Follows `next` to the end during a flip; every package must appear once, all from one snapshot. */
async function walk(service: ServerProcess, path: string, expected: number): Promise<void> {
  const before = await service.megabytes();
  await startRebuild(service);
  const seen = new Set<number>();
  const snapshots = new Set<string | null>();
  let entries = 0;
  let isFlipped = false;
  for (let next: string | undefined = path; next !== undefined;) {
    const response: Response = await fetch(service.url + next);
    const { results } = (await response.json()) as { results: { no: number }[] };
    snapshots.add(response.headers.get('X-Snapshot'));
    entries += results.length;
    for (const { no } of results) seen.add(no);
    const target = /<(\?[^>]*)>; rel="next"/.exec(response.headers.get('Link') ?? '')?.[1];
    next = target && path.replace(/\?.*/, '') + target;
    if (isFlipped || entries * 2 <= expected) continue;
    await waitUntil(async () => !snapshots.has(await snapshotOf(service)), 'another snapshot to be served');
    isFlipped = true;
  }
  const isWhole = entries === expected && seen.size === expected && snapshots.size === 1 && isFlipped;
  report(`walk of ${path}, with a flip: distinct packages`, seen.size, expected, isWhole);
  report('the same: additional memory, megabytes', (await service.megabytes()) - before, 50);
}

await withEngines(async ({ elasticsearch, input }) => {
  const names: string[] = [];
  let containing = 0;
  for await (const { name } of generatedPackages(NAMES)) {
    if (name.toLowerCase().includes('li')) containing++;
    if (random() < 10_000 / NAMES) names.push(name);
  }
  const env = uncachedEnv(elasticsearch.url);
  const loaded = await load(NAMES, { env, folder: input, keep: true });
  await loaded.service.stop();
  // A new process, which has not loaded the dataset.
  const service = await ServerProcess.start('dist/main.js', {
    ...env,
    REGISTRY_SLUG: loaded.slug,
    REBUILD_SECRET: SECRET,
    DATASET_URL: pathToFileURL(join(input, `names-${NAMES}.csv`)).href,
  });
  const client = new BaselineClient(service.url, 1);
  try {
    await compareWithSearches(client, names);
    await compareWords(client, names);
    await findTypos(client, names);
    await flood(service, names, 'typos', () => typo(random, pick(random, names)));
    // The most expensive names for Elasticsearch: the longest, from an alphabet of thousands.
    const ideograph = () => String.fromCodePoint(integer(random, 0x4e00, 0x9fff));
    await flood(service, names, '100 ideographs each', () => Array.from({ length: 100 }, ideograph).join(''));
    await searchDuringRebuilds(service, names);
    await walk(service, '/browse?limit=500', NAMES);
    await walk(service, '/search?q=li&limit=500', containing);
  } finally {
    await client.close();
    await service.stop();
  }
});
exitByGoals();
