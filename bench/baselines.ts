import { writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { searchTierByTier } from '../src/search/tiered-search.js';
import { msearchRequest, type SearchBody } from '../src/elasticsearch/msearch.js';
import { searchTiers } from '../src/search/queries.js';
import type { Service } from '../dev/service.js';
import { Oracle, type RankedEntry } from '../test/fixtures/search-oracle.js';
import { browseRounds } from './browse-pages.js';
import { barChart } from './chart.js';
import { generatedPackages } from '../test/fixtures/generated-dataset.js';
import { costPerRequest, repeated, timePerRequest, type Contender } from './cost.js';
import { elasticsearchTime, redisTime, withEngines } from './engines.js';
import {
  estimateOf,
  LIMIT,
  load,
  searchPath,
  SECRET,
  servedIndex,
  slugOf,
  uncachedEnv,
  type Loaded,
} from './load.js';
import {
  BaselineClient,
  interleaveRounds,
  medianRatio,
  requestsPerSecond,
  throughput,
  type Statistic,
  type Contestants,
} from './measure.js';
import { mean, median, percentile } from '../test/fixtures/statistics.js';
import { openLoop } from './open-loop.js';
import { OPTIONS } from './options.js';
import { ServerProcess } from './processes.js';
import { processorTime } from './processor-time.js';
import { makeQueries, type Query } from '../test/fixtures/queries.js';

const QUICK = OPTIONS.quick;
const SIZES = QUICK ? [50_000, 250_000] : [250_000, 1_000_000, 4_000_000];
const SMALLEST = Math.min(...SIZES);
const LARGEST = Math.max(...SIZES);
const ORACLE_SIZE = QUICK ? LARGEST : 1_000_000;
const ROUNDS = QUICK ? 3 : 9;
const SECONDS = QUICK ? 2 : 4;
const QUERIES_PER_KIND = QUICK ? 40 : 100;
const ORACLE_QUERIES = 100;
/** Searches during a rebuild: rows of the dataset, number of rebuilds, seconds of idle searches before. */
const REBUILT_SIZE = QUICK ? LARGEST : 1_000_000;
const REBUILDS = QUICK ? 2 : 3;
const IDLE_SECONDS = QUICK ? 3 : 10;
const CONNECTIONS = 16;
/** Open loop: arrival rates as shares of the highest rate, duration, and connections. */
const LOADS = [0.25, 0.5, 0.75];
const OPEN_LOOP_SECONDS = QUICK ? 5 : 20;
const OPEN_LOOP_CONNECTIONS = 256;
/** Clients behind a trusted proxy, each with its own budget. */
const CLIENTS = 10_000;
/** Pause between two searches of the single client during a rebuild, in milliseconds. */
const SEARCH_PAUSE_MS = 5;
/** Drawn only by a full run. */
const LATENCY_CHART = 'docs/evidence/charts/latency.svg';
const RESULTS = 'bench-results.json';

interface Figure {
  figure: string;
  goal: string;
  value: number;
  met: boolean;
}
const figures: Figure[] = [];

function record(figure: string, relation: '≤' | '≥', goal: number, value: number): void {
  const met = relation === '≤' ? value <= goal : value >= goal;
  figures.push({ figure, goal: `${relation} ${goal.toLocaleString('en')}`, value, met });
  print(`${met ? '  ok   ' : '  SHORT'} ${value.toFixed(2).padStart(10)}  ${relation} ${goal}  ${figure}`);
}

/** Records a figure without a goal, which explains another one. */
function note(figure: string, value: number): void {
  figures.push({ figure, goal: 'none', value, met: true });
  print(`       ${value.toFixed(2).padStart(10)}        ${figure}`);
}

function print(line: string): void {
  console.log(line);
}

/** Ratios of two contestants, one per statistic: medians over rounds. */
async function ratio<T>(
  items: readonly T[],
  contestants: Contestants<T>,
  statistics: readonly Statistic[],
): Promise<number[]> {
  const rounds = await interleaveRounds(items, contestants, ROUNDS);
  return statistics.map((statistic) => medianRatio(rounds, statistic));
}

/** The ratio of two rates that are measured in turns: median over rounds. */
async function rateRatio(ours: () => Promise<number>, baseline: () => Promise<number>): Promise<number> {
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const [first, second] = round % 2 === 0 ? [ours, baseline] : [baseline, ours];
    const [a, b] = [await first(), await second()];
    rounds.push(round % 2 === 0 ? a / b : b / a);
  }
  return median(rounds);
}

async function coldSearch(
  loaded: Map<number, Loaded>,
  queries: Query[],
  elasticsearch: Service,
): Promise<void> {
  const large = loaded.get(LARGEST) as Loaded;
  const small = loaded.get(SMALLEST) as Loaded;
  const engine = new BaselineClient(elasticsearch.url, CONNECTIONS);
  const ours = new BaselineClient(large.service.url, CONNECTIONS);
  const oursSmall = new BaselineClient(small.service.url, CONNECTIONS);
  const isLikelyFull = await estimateOf(elasticsearch.url, large.index);
  const run = parsedSearches(engine, large.index);
  const baseline = ({ q }: Query) => searchTierByTier(run, { q, limit: LIMIT }, isLikelyFull(q, LIMIT));
  const served = (query: Query) => ours.get(searchPath(query));

  const [p50, p99] = await ratio(queries, [served, baseline], [median, (times) => percentile(times, 0.99)]);
  record('cold search, p50 ÷ the same request to Elasticsearch, bare and parsed', '≤', 1.25, p50 as number);
  record('the same at p99', '≤', 1.2, p99 as number);
  record(
    `cold searches a second over ${CONNECTIONS} connections ÷ the same requests bare`,
    '≥',
    0.8,
    await rateRatio(
      () => throughput(queries, served, CONNECTIONS, SECONDS),
      () => throughput(queries, baseline, CONNECTIONS, SECONDS),
    ),
  );
  const proxy = await ServerProcess.start('bench/baseline-proxy.ts', {
    ELASTICSEARCH_URL: elasticsearch.url,
    INDEX: large.index,
    LIMIT: String(LIMIT),
    CONNECTIONS: String(CONNECTIONS),
  });
  const throughProxy = new BaselineClient(proxy.url, CONNECTIONS);
  const relayed = (query: Query) => throughProxy.get(searchPath(query));
  note(
    'p50 of a bare Koa that relays the responses unparsed ÷ the same request bare and parsed',
    (await ratio(queries, [relayed, baseline], [median]))[0] as number,
  );
  record(
    'the same ÷ a bare Koa that sends the same requests and relays the responses unparsed',
    '≥',
    0.95,
    await rateRatio(
      () => throughput(queries, served, CONNECTIONS, SECONDS),
      () => throughput(queries, relayed, CONNECTIONS, SECONDS),
    ),
  );
  const requests = queries.map((query) => ({ path: searchPath(query) }));
  const cost = await costPerRequest({ server: large.service, requests }, { server: proxy, requests });
  record('the same, processor time per search', '≤', 1.15, cost.subject / cost.baseline);
  await Promise.all([proxy.stop(), throughProxy.close()]);
  await costsOfEach(large.service, queries, elasticsearch);
  record('peak memory of the server, load and cold searches, MB', '≤', 200, large.service.peakMegabytes);
  await latencies(large.service, queries);
  note(`the same after searches over ${OPEN_LOOP_CONNECTIONS} connections, MB`, large.service.peakMegabytes);
  const bySize: Contestants<Query> = [served, (query) => oursSmall.get(searchPath(query))];
  const broad = queries.filter(({ kind }) => kind === 'broad');
  const names = `${LARGEST} ÷ ${SMALLEST} names`;
  record(
    `cold search, ${names}, mean of all queries`,
    '≤',
    1.1,
    (await ratio(queries, bySize, [mean]))[0] as number,
  );
  record(`the same, broad queries`, '≤', 1.1, (await ratio(broad, bySize, [mean]))[0] as number);

  const byScore = async ({ q }: Query) => {
    const { path, body } = msearchRequest(large.index, [sortedByScore(q)]);
    JSON.parse(await engine.post(path, body));
  };
  record(
    'broad queries: one query sorted by _score ÷ ours',
    '≥',
    5,
    (await ratio(broad, [byScore, baseline], [mean]))[0] as number,
  );

  const pages = await browseRounds(ours, LARGEST, QUERIES_PER_KIND, ROUNDS);
  record('browse, last page ÷ first page', '≤', 1.2, medianRatio(pages, median));
  await Promise.all([engine.close(), ours.close(), oursSmall.close()]);
}

/** Records the processor time of an uncached search, and the share of it spent on garbage collection. */
async function costsOfEach(server: ServerProcess, queries: Query[], elasticsearch: Service): Promise<void> {
  const requests = queries.map((query) => ({ path: searchPath(query) }));
  const time = await timePerRequest(
    { server, requests },
    {
      service: () => processorTime(server.pid),
      elasticsearch: () => elasticsearchTime(elasticsearch.url),
      collection: () => server.collectionTime(),
    },
  );
  note('processor time per cold search, ms: service', time.service);
  note('the same: Elasticsearch', time.elasticsearch);
  record(
    'garbage collection, % of the processor time of the service',
    '≤',
    12,
    (100 * time.collection) / time.service,
  );
}

/** Records the latencies of cold searches that arrive at constant rates. */
async function latencies(service: ServerProcess, queries: Query[]): Promise<void> {
  const quantiles: Record<string, number[]> = {};
  const client = new BaselineClient(service.url, OPEN_LOOP_CONNECTIONS);
  const search = (query: Query) => client.get(searchPath(query));
  const highest = await throughput(queries, search, OPEN_LOOP_CONNECTIONS, OPEN_LOOP_SECONDS);
  note('highest rate of cold searches per second', highest);
  for (const load of LOADS) {
    const times = await openLoop(queries, search, load * highest, OPEN_LOOP_SECONDS);
    for (const share of [0.5, 0.99, 0.999]) {
      const quantile = `p${share * 100}`;
      const time = percentile(times, share);
      note(`at ${load * 100} % of that rate, open loop: ${quantile}, ms`, time);
      (quantiles[quantile] ??= []).push(Number(time.toPrecision(2)));
    }
  }
  await client.close();
  if (QUICK) return;
  await barChart(LATENCY_CHART, {
    title: `Uncached searches at a constant rate, ${LARGEST.toLocaleString('en')} names, ms`,
    categories: LOADS.map((load) => `${Math.round(load * highest)} a second`),
    series: quantiles,
  });
}

/** Sends searches and parses the responses as any client would. */
function parsedSearches(engine: BaselineClient, index: string) {
  return async (bodies: SearchBody[]) => {
    const { path, body } = msearchRequest(index, bodies);
    const { responses } = JSON.parse(await engine.post(path, body)) as {
      responses: { hits?: { hits?: never[] } }[];
    };
    return responses.map(({ hits }) => ({ entries: hits?.hits ?? [], exact: 0 }));
  };
}

/** The alternative to tiers: the same clauses in one query, ranked by score. */
function sortedByScore(q: string): SearchBody {
  const [startsWith, elsewhere] = searchTiers(q, LIMIT + 1) as unknown as {
    query: { bool: Record<'filter' | 'should', never> };
  }[];
  const clauses = [
    elsewhere?.query.bool.filter,
    startsWith?.query.bool.filter,
    startsWith?.query.bool.should,
  ];
  const [contains, starts, equals] = clauses.map((filter) => ({
    constant_score: { filter: { bool: { filter } } },
  }));
  return {
    ...startsWith,
    query: { bool: { must: contains, should: [starts, equals] } },
    sort: ['_score', 'name.lowercase', 'name', 'no'],
  };
}

async function hotSearch(env: Record<string, string>, redis: Service): Promise<void> {
  const serve = (more: Record<string, string>) =>
    ServerProcess.start('dist/main.js', {
      ...env,
      REGISTRY_SLUG: slugOf(LARGEST),
      CACHE_MAX_BYTES: '67108864',
      ...more,
    });
  const unlimited = await serve({});
  const limited = await serve({
    REDIS_URL: redis.url,
    RATE_LIMIT_POINTS: '1000000000',
    TRUSTED_PROXIES: '127.0.0.1',
  });
  const path = `/search?limit=${LIMIT}&q=lib`;
  const answer = await fetch(unlimited.url + path);
  const bytes = await answer.text();
  const etag = answer.headers.get('ETag') ?? '';
  const koa = await ServerProcess.start('bench/baseline-koa.ts', {}, bytes);
  const koaPing = await ServerProcess.start('bench/baseline-koa.ts', {}, '{"ping":"pong"}');
  const baseline = () => requestsPerSecond(koa.url, 200, SECONDS);
  const { count } = JSON.parse(bytes) as { count: number };
  if (count !== LIMIT) throw new Error(`the hot response has ${count} results`);

  record(
    'hot search, requests a second ÷ a bare Koa that serves the same bytes',
    '≥',
    0.9,
    await rateRatio(() => requestsPerSecond(unlimited.url + path, 200, SECONDS), baseline),
  );
  record(
    'the same with the limits on Redis',
    '≥',
    0.7,
    await rateRatio(() => requestsPerSecond(limited.url + path, 200, SECONDS), baseline),
  );
  record(
    '304 responses a second ÷ a bare Koa {ping:"pong"}',
    '≥',
    0.85,
    await rateRatio(
      () => requestsPerSecond(unlimited.url + path, 304, SECONDS, { 'If-None-Match': etag }),
      () => requestsPerSecond(koaPing.url, 200, SECONDS),
    ),
  );
  const cached: Contender = { server: unlimited, requests: repeated({ path }) };
  const oneClient: Contender = { server: limited, requests: repeated({ path }) };
  const manyClients: Contender = {
    server: limited,
    requests: Array.from({ length: CLIENTS }, (_, i) => ({
      path,
      headers: { 'X-Forwarded-For': `10.1.${i >> 8}.${i & 255}` },
    })),
  };
  const revalidated: Contender = {
    server: unlimited,
    requests: repeated({ path, headers: { 'If-None-Match': etag } }),
    status: 304,
  };
  const bytesOfKoa: Contender = { server: koa, requests: repeated({ path: '/' }) };
  const pingOfKoa: Contender = { server: koaPing, requests: repeated({ path: '/' }) };
  for (const [figure, subject, baseline, goal] of [
    ['hot search, processor time of bare Koa ÷ ours', cached, bytesOfKoa, 0.9],
    ['the same with the limits on Redis, one client', oneClient, bytesOfKoa, 0.7],
    [`the same, ${CLIENTS} clients behind a proxy`, manyClients, bytesOfKoa, 0.5],
    ['304, processor time of bare Koa {ping:"pong"} ÷ ours', revalidated, pingOfKoa, 0.85],
  ] as const) {
    const cost = await costPerRequest(subject, baseline);
    record(figure, '≥', goal, cost.baseline / cost.subject);
  }
  for (const [clients, contender] of [
    ['one client', oneClient],
    [`${CLIENTS} clients`, manyClients],
  ] as const) {
    const time = await timePerRequest(contender, {
      service: () => processorTime(limited.pid),
      redis: () => redisTime(redis.url),
    });
    note(`processor time per hot search with limits, ${clients}, µs: service`, 1000 * time.service);
    note('the same: Redis', 1000 * time.redis);
  }
  await Promise.all([unlimited, limited, koa, koaPing].map((server) => server.stop()));
}

/** Compares the p99 of searches during a rebuild with the idle p99, on the same engine and processors. */
async function searchDuringRebuild(
  { service, slug }: Loaded,
  queries: Query[],
  elasticsearch: string,
): Promise<void> {
  const client = new BaselineClient(service.url, 1);
  let next = 0;
  const searchWhile = async (goesOn: () => boolean) => {
    const times: number[] = [];
    while (goesOn()) {
      const began = performance.now();
      await client.get(searchPath(queries[next++ % queries.length] as Query));
      times.push(performance.now() - began);
      await pause(SEARCH_PAUSE_MS);
    }
    return percentile(times, 0.99);
  };
  const idleSearches = () => {
    const end = performance.now() + IDLE_SECONDS * 1000;
    return searchWhile(() => performance.now() < end);
  };
  const rebuild = async () => {
    const served = await servedIndex(elasticsearch, slug);
    const answer = await fetch(`${service.url}/rebuild?secret=${SECRET}`);
    await answer.arrayBuffer();
    if (answer.status !== 202) throw new Error(`/rebuild returned ${answer.status}`);
    while ((await servedIndex(elasticsearch, slug)) === served) await pause(250);
  };

  const ratios: number[] = [];
  await idleSearches();
  for (let round = 0; round < REBUILDS; round++) {
    const idle = await idleSearches();
    let rebuilding = true;
    const rebuilt = rebuild().finally(() => (rebuilding = false));
    const during = await searchWhile(() => rebuilding);
    await rebuilt;
    ratios.push(during / idle);
  }
  await client.close();
  record(`search during a rebuild of ${REBUILT_SIZE} rows ÷ idle, p99`, '≤', 1.6, median(ratios));
}

/** Compares uncached searches in a process that has rebuilt with those in a fresh one, on the same index. */
async function searchAfterRebuilds(
  { service, slug }: Loaded,
  env: Record<string, string>,
  queries: Query[],
): Promise<void> {
  const fresh = await ServerProcess.start('dist/main.js', { ...env, REGISTRY_SLUG: slug });
  const requests = queries.map((query) => ({ path: searchPath(query) }));
  const cost = await costPerRequest({ server: service, requests }, { server: fresh, requests });
  record(
    `cold search after ${REBUILDS} rebuilds ÷ in a fresh process, processor time`,
    '≤',
    1.1,
    cost.subject / cost.baseline,
  );
  const time = await timePerRequest(
    { server: service, requests },
    { service: () => processorTime(service.pid), collection: () => service.collectionTime() },
  );
  record('garbage collection after the rebuilds, %', '≤', 12, (100 * time.collection) / time.service);
  await fresh.stop();
}

/** Compares search results with those of a plain loop over all names. */
async function checkAnswers({ service }: Loaded, queries: Query[]): Promise<void> {
  const packages = [];
  for await (const entry of generatedPackages(ORACLE_SIZE)) packages.push(entry);
  const oracle = new Oracle(packages);
  const client = new BaselineClient(service.url, 1);
  for (const query of queries.slice(0, ORACLE_QUERIES)) {
    const { results } = JSON.parse(await client.get(searchPath(query))) as { results: RankedEntry[] };
    const expected = oracle.search(query.q).slice(0, LIMIT);
    if (JSON.stringify(results) !== JSON.stringify(expected))
      throw new Error(`wrong results for ${JSON.stringify(query.q)}`);
  }
  await client.close();
  print(
    `  ok    ${ORACLE_QUERIES} queries on ${ORACLE_SIZE.toLocaleString('en')} names match a brute-force loop`,
  );
}

/**
 * Compares the service with its baselines, on a real Elasticsearch and a real Redis. Every figure is a ratio
 * (or, for the load, a rate) measured in this run. The two sides of a ratio take turns, and the median over
 * rounds counts. Prints the figures and writes them to `RESULTS`.
 */
export async function compareWithBaselines(): Promise<void> {
  await withEngines(async ({ elasticsearch, redis, input }) => {
    const env = uncachedEnv(elasticsearch.url);
    // Metrics add a few microseconds per request: too much for cached responses, which take some tens of them.
    const withMetrics = { ...env, METRICS_PORT: '0' };
    const loaded = new Map<number, Loaded>();
    try {
      for (const size of SIZES) {
        loaded.set(size, await load(size, { env: withMetrics, folder: input, keep: size === REBUILT_SIZE }));
      }
      for (const [size, { engineTime }] of loaded) {
        note(`processor time per row, load of ${size} rows, µs: Elasticsearch`, (1000 * engineTime) / size);
      }
      const { service, seconds } = loaded.get(LARGEST) as Loaded;
      record(`load of ${LARGEST} rows, validation to flip, rows a second`, '≥', 25_000, LARGEST / seconds);
      record('peak memory of server and worker, MB', '≤', 400, service.peakMegabytesWithChildren);
      const names: string[] = [];
      for await (const { name } of generatedPackages(SMALLEST)) names.push(name);
      const queries = makeQueries(names, QUERIES_PER_KIND);
      await checkAnswers(loaded.get(ORACLE_SIZE) as Loaded, queries);
      await coldSearch(loaded, queries, elasticsearch);
      await hotSearch(env, redis);
      const rebuilt = loaded.get(REBUILT_SIZE) as Loaded;
      await searchDuringRebuild(rebuilt, queries, elasticsearch.url);
      await searchAfterRebuilds(rebuilt, withMetrics, queries);
    } finally {
      await Promise.all([...loaded.values()].map(({ service }) => service.stop()));
    }
  });
  console.table(
    figures.map(({ figure, goal, value, met }) => ({ figure, goal, value: Number(value.toFixed(2)), met })),
  );
  await writeFile(
    RESULTS,
    `${JSON.stringify({ taken_at: new Date().toISOString(), quick: QUICK, node: process.version, figures }, null, 2)}\n`,
  );
  print(`Written to ${RESULTS}.`);
}
