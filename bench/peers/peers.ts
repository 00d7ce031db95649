import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../src/dev/paths.js';
import type { RankedEntry } from '../../fixtures/search-oracle.js';
import { barChart } from '../chart.js';
import { generatedPackages, writeDataset } from '../../fixtures/generated-dataset.js';
import { bytesOf, withEngines } from '../engines.js';
import { LIMIT, load, searchPath, uncachedEnv } from '../load.js';
import { BaselineClient, throughput, type Contestant } from '../measure.js';
import { mean, median, percentile } from '../../fixtures/statistics.js';
import { makeQueries } from '../../fixtures/queries.js';
import type { Peer } from './peer.js';
import { startPostgresql } from './postgresql.js';
import { startSqlite } from './sqlite.js';

/**
 * `npm run bench:peers` runs the same searches on the service and on databases that can search for
 * substrings, in turns. All results must be equal. The service responds over HTTP, without its cache, and its
 * JSON is parsed.
 */

const SIZE = 1_000_000;
const QUERIES_PER_KIND = 20;
const ROUNDS = 9;
/** Warm-up of each engine before the first round, for just-in-time compilation. */
const WARM_UP_SECONDS = 30;
const RESULTS = 'bench-peers.json';
const CHART = 'docs/evidence/charts/peers.svg';
const MEGABYTE = 1e6;

await withEngines(async ({ elasticsearch, input, runAs }) => {
  const env = uncachedEnv(elasticsearch.url);
  const { service, index } = await load(SIZE, { env, folder: input });
  const peers: Peer[] = [];
  try {
    peers.push(serviceAsPeer(service.url, elasticsearch.url, index));
    peers.push(...(await startSqlite(generatedPackages(SIZE), input)));
    const shared = makeFolder(join(input, 'postgresql'), runAs);
    const dataset = join(shared, 'names.csv');
    await chmod(input, 0o755);
    await writeDataset(dataset, SIZE);
    peers.push(await startPostgresql({ dataset, folder: shared, runAs }));
    await compare(peers);
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
    await service.stop();
  }
});

function serviceAsPeer(url: string, elasticsearch: string, index: string): Peer {
  const client = new BaselineClient(url, 1);
  return {
    name: 'This service, over HTTP',
    search: async (q) => {
      const { results } = JSON.parse(await client.get(searchPath({ q }))) as { results: RankedEntry[] };
      return results;
    },
    bytes: () => bytesOf(elasticsearch, index),
    stop: () => client.close(),
  };
}

/** Times of one engine for all queries of one round, in milliseconds. */
interface Round {
  mean: number;
  p95: number;
}

async function compare(peers: Peer[]): Promise<void> {
  const names: string[] = [];
  for await (const { name } of generatedPackages(SIZE / 4)) names.push(name);
  const queries = makeQueries(names, QUERIES_PER_KIND).map(({ q }) => q);
  await checkEqual(peers, queries);
  await report(peers, await measure(peers, queries));
}

/** @returns the rounds of each engine, in the order of `peers`. */
async function measure(peers: Peer[], queries: string[]): Promise<Round[][]> {
  const contestants = peers.map((peer) => (q: string) => peer.search(q, LIMIT));
  for (const contestant of contestants) await throughput(queries, contestant, 1, WARM_UP_SECONDS);
  const rounds = peers.map((): Round[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const peer = (round + turn) % contestants.length;
      const times = await timesOf(queries, contestants[peer] as Contestant<string>);
      rounds[peer]?.push({ mean: mean(times), p95: percentile(times, 0.95) });
    }
  }
  return rounds;
}

/** @param rounds of each engine; the service comes first. */
async function report(peers: Peer[], rounds: Round[][]): Promise<void> {
  const [service = []] = rounds;
  const results = await Promise.all(
    peers.map(async ({ name, bytes }, peer) => {
      const own = rounds[peer] ?? [];
      const time = (statistic: keyof Round) => rounded(median(own.map((round) => round[statistic])));
      // Ratios are taken within a round, so that both sides ran under the same conditions.
      const ratio = (statistic: keyof Round) =>
        rounded(median(own.map((round, i) => round[statistic] / (service[i]?.[statistic] ?? NaN))));
      return {
        name,
        'mean, ms': time('mean'),
        'p95, ms': time('p95'),
        'mean ÷ service': ratio('mean'),
        'p95 ÷ service': ratio('p95'),
        'on disk, MB': Math.round((await bytes()) / MEGABYTE),
      };
    }),
  );
  console.table(results);
  const taken_at = new Date().toISOString();
  await writeFile(RESULTS, `${JSON.stringify({ taken_at, node: process.version, results }, null, 2)}\n`);
  await barChart(CHART, {
    title: `Time per search, ${SIZE.toLocaleString('en')} names, ms`,
    categories: results.map(({ name }) => name),
    series: { mean: results.map((row) => row['mean, ms']), p95: results.map((row) => row['p95, ms']) },
  });
  console.log(`Written to ${RESULTS} and ${CHART}.`);
}

async function checkEqual([service, ...others]: Peer[], queries: string[]): Promise<void> {
  for (const q of queries) {
    const expected = JSON.stringify(await service?.search(q, LIMIT));
    for (const { name, search } of others) {
      if (JSON.stringify(await search(q, LIMIT)) !== expected)
        throw new Error(`${name} returns different results for ${JSON.stringify(q)}`);
    }
  }
  console.log(`  ok    ${queries.length} queries return the same results on all engines`);
}

/** Times the items one after the other, in milliseconds. */
async function timesOf<T>(items: readonly T[], contestant: Contestant<T>): Promise<number[]> {
  const times: number[] = [];
  for (const item of items) {
    const began = performance.now();
    await contestant(item);
    times.push(performance.now() - began);
  }
  return times;
}

function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
