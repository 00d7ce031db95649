import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { canonicalName, type NameRule } from '../src/util/name-rule.js';
import type { PackageEntry } from '../src/snapshot/package-document.js';
import { generatedPackages } from '../test/fixtures/generated-dataset.js';
import { makeQueries } from '../test/fixtures/queries.js';
import { median, percentile } from '../test/fixtures/statistics.js';
import { bytesOf, elasticsearchTime, withEngines } from './engines.js';
import { exitByGoals, report } from './goals.js';
import { LIMIT, load, searchPath, uncachedEnv } from './load.js';
import { BaselineClient, interleaveRounds, medianRatio } from './measure.js';
import { ServerProcess } from './processes.js';

/**
 * `npm run bench -- rules` measures searches by the name rule `pypi`, searches of `match=prefix`, and searches with a total,
 * each beside ordinary searches of the same names. The exit code is 1 if a goal was missed.
 */

const { values } = parseArgs({ options: { names: { type: 'string', default: '1000000' } } });
const NAMES = Number(values.names);

const QUERIES_PER_KIND = 100;
const PREFIXES = 200;
const ROUNDS = 5;
const SAMPLED = 10_000;

/** Number of times that the searches of one round are repeated, so that they take seconds. */
const PASSES = 5;
/** Elasticsearch measures its processor time once a second. */
const STATS_AGE_MS = 1100;

/** `NAMES` generated packages, no two of which are one name to `pypi`. */
async function* distinctPackages(): AsyncGenerator<PackageEntry> {
  const seen = new Set<string>();
  for await (const entry of generatedPackages(2 * NAMES)) {
    const canonical = canonicalName('pypi', entry.name);
    if (seen.has(canonical)) continue;
    seen.add(canonical);
    yield { ...entry, no: seen.size };
    if (seen.size === NAMES) return;
  }
}

/** Searches whose page is not filled by names that begin with the query. */
async function sparsePrefixes(client: BaselineClient, names: readonly string[]): Promise<string[]> {
  const sparse: string[] = [];
  for (const { kind, q } of makeQueries(names, 4 * PREFIXES)) {
    if (kind !== 'prefix') continue;
    const { count } = JSON.parse(await client.get(`${searchPath({ q })}&match=prefix`)) as { count: number };
    if (count < LIMIT) sparse.push(searchPath({ q }));
    if (sparse.length === PREFIXES) break;
  }
  return sparse;
}

/** The processor time of Elasticsearch for all searches with `match=prefix` ÷ without it, median of rounds in turn. */
async function prefixCost(elasticsearch: string, client: BaselineClient, paths: string[]): Promise<number> {
  const settledTime = async () => {
    await pause(STATS_AGE_MS);
    return elasticsearchTime(elasticsearch);
  };
  const costOf = async (more: string) => {
    const before = await settledTime();
    for (let pass = 0; pass < PASSES; pass++) for (const path of paths) await client.get(path + more);
    return (await settledTime()) - before;
  };
  const ratios: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const contains = await costOf('');
    const prefix = await costOf('&match=prefix');
    // The first round warms up.
    if (round > 0) ratios.push(prefix / contains);
  }
  return median(ratios);
}

await withEngines(async ({ elasticsearch: { url }, input }) => {
  const env = uncachedEnv(url);
  const start = async (rule: NameRule) => {
    const options = { folder: input, slug: `bench-${rule}`, packages: distinctPackages() };
    const { service, slug, index } = await load(NAMES, { ...options, env: { ...env, NAME_RULE: rule } });
    await service.stop();
    // A new process, which has not loaded the dataset.
    return { index, server: await ServerProcess.start('dist/main.js', { ...env, REGISTRY_SLUG: slug }) };
  };
  const exact = await start('exact');
  const pypi = await start('pypi');
  const clients = [new BaselineClient(exact.server.url, 1), new BaselineClient(pypi.server.url, 1)] as const;
  try {
    const names: string[] = [];
    for await (const { no, name } of distinctPackages()) {
      if (no % Math.ceil(NAMES / SAMPLED) === 0) names.push(name);
    }
    const paths = makeQueries(names, QUERIES_PER_KIND).map(searchPath);
    const [ofExact, ofPypi] = clients;
    const search =
      (client: BaselineClient, more = '') =>
      (path: string) =>
        client.get(path + more);
    const p = (share: number) => (times: readonly number[]) => percentile(times, share);

    const rules = await interleaveRounds(paths, [search(ofPypi), search(ofExact)], ROUNDS);
    report('search by pypi ÷ exact, p50', medianRatio(rules, p(0.5)), 1.05);
    report(
      'size of the index, pypi ÷ exact',
      (await bytesOf(url, pypi.index)) / (await bytesOf(url, exact.index)),
      1.05,
    );

    const sparse = await sparsePrefixes(ofExact, names);
    report(
      `${sparse.length} searches of match=prefix ÷ contains, processor time of Elasticsearch`,
      await prefixCost(url, ofExact, sparse),
      0.85,
    );

    const totals = await interleaveRounds(paths, [search(ofExact, '&total=true'), search(ofExact)], ROUNDS);
    report('search with total=true ÷ without, p50', medianRatio(totals, p(0.5)), 2);
    report('search with total=true ÷ without, p99', medianRatio(totals, p(0.99)), 2);
  } finally {
    await Promise.all([...clients.map((client) => client.close()), exact.server.stop(), pypi.server.stop()]);
  }
});
exitByGoals();
