import { writeFile } from 'node:fs/promises';
import { generatedPackages } from '../test/fixtures/generated-dataset.js';
import { bytesOf, elasticsearchTime, redisTime, withEngines } from './engines.js';
import { load, searchPath, uncachedEnv, type Loaded } from './load.js';
import { BaselineClient, throughput, type Contestant } from './measure.js';
import { median } from '../test/fixtures/statistics.js';
import { ServerProcess } from './processes.js';
import { makeQueries } from '../test/fixtures/queries.js';

/**
 * `npm run bench -- sizing` measures the bytes per name and the processor time per search, and computes the
 * hardware for a number of names and searches. Processor time counts, not elapsed time, so other load matters
 * little.
 */

const QUICK = process.argv.includes('--quick');
const SIZES = QUICK ? [50_000, 250_000] : [1_000_000, 4_000_000];
const [SMALL, LARGE] = SIZES as [number, number];
const ROUNDS = 5;
const SECONDS = QUICK ? 2 : 4;
const QUERIES_PER_KIND = 100;
const CONNECTIONS = 8;
const RESULTS = 'sizing-results.json';

/** Numbers of names, searches a second and cache hit ratios that the tables cover. */
const NAMES = [250_000, 1_000_000, 4_000_000];
const SEARCHES = [100, 1_000, 2_000];
const HIT_SHARES = [0, 0.8];
/** Target utilization of processors, at which a search rarely waits for one. */
const BUSY = 0.6;

/** Processor time of one request, in milliseconds. */
interface Cost {
  service: number;
  elasticsearch: number;
}

const print = (line: string) => console.log(line);

/** The cost of a request: median over rounds. */
async function costOf<T>(
  items: readonly T[],
  contestant: Contestant<T>,
  service: ServerProcess,
  elasticsearch: string,
): Promise<Cost> {
  const rounds: Cost[] = [];
  await throughput(items, contestant, CONNECTIONS, SECONDS);
  for (let round = 0; round < ROUNDS; round++) {
    const before = [await service.cpuSeconds(), (await elasticsearchTime(elasticsearch)) / 1000] as const;
    let requests = 0;
    await throughput(items, (item) => (requests++, contestant(item)), CONNECTIONS, SECONDS);
    const after = [await service.cpuSeconds(), (await elasticsearchTime(elasticsearch)) / 1000] as const;
    const each = (i: 0 | 1) => ((after[i] - before[i]) * 1000) / requests;
    rounds.push({ service: each(0), elasticsearch: each(1) });
  }
  return {
    service: median(rounds.map((round) => round.service)),
    elasticsearch: median(rounds.map((round) => round.elasticsearch)),
  };
}

/** Processor time of Redis per request, in milliseconds. @param work returns how many requests it made. */
async function redisCost(url: string, work: () => Promise<number>): Promise<number> {
  const before = await redisTime(url);
  const requests = await work();
  return ((await redisTime(url)) - before) / requests;
}

interface Measured {
  /** Size of one copy of the index. */
  bytesPerName: number;
  rowsPerSecond: number;
  /** Memory of the server during a load, in bytes: the base, and the increment per name. */
  loadBaseBytes: number;
  loadBytesPerName: number;
  cold: Cost;
  hot: Cost;
  limitedHot: Cost;
  redisMs: number;
  answerBytes: number;
}

async function measure(elasticsearch: string, redis: string, folder: string): Promise<Measured> {
  const env = uncachedEnv(elasticsearch);
  const services: ServerProcess[] = [];
  const loaded = async (size: number, slug: string): Promise<Loaded> => {
    const made = await load(size, { env, folder, slug });
    services.push(made.service);
    return made;
  };
  const names: string[] = [];
  for await (const { name } of generatedPackages(SMALL)) names.push(name);
  const queries = makeQueries(names, QUERIES_PER_KIND);
  const cold = async ({ service }: Loaded): Promise<Cost> => {
    const client = new BaselineClient(service.url, CONNECTIONS);
    try {
      return await costOf(queries, (query) => client.get(searchPath(query)), service, elasticsearch);
    } finally {
      await client.close();
    }
  };
  const hot = async (slug: string, more: Record<string, string>) => {
    const service = await ServerProcess.start('dist/main.js', {
      ...env,
      REGISTRY_SLUG: slug,
      CACHE_MAX_BYTES: '67108864',
      ...more,
    });
    services.push(service);
    const client = new BaselineClient(service.url, CONNECTIONS);
    let requests = 0;
    let bytes = 0;
    const ask = async (query: { q: string }) => {
      requests++;
      const { length } = await client.get(searchPath(query));
      bytes += length;
    };
    const cost = await costOf(queries, ask, service, elasticsearch);
    await client.close();
    return { cost, requests, bytes };
  };
  try {
    const small = await loaded(SMALL, 'sizing-small');
    const large = await loaded(LARGE, 'sizing-large');
    const megabytesPerName =
      (large.service.peakMegabytesWithChildren - small.service.peakMegabytesWithChildren) / (LARGE - SMALL);
    const unlimited = await hot(large.slug, {});
    let limited: Awaited<ReturnType<typeof hot>> | undefined;
    const redisMs = await redisCost(redis, async () => {
      limited = await hot(large.slug, { REDIS_URL: redis, RATE_LIMIT_POINTS: '1000000000' });
      return limited.requests;
    });
    return {
      bytesPerName: (await bytesOf(elasticsearch, large.index)) / LARGE,
      rowsPerSecond: LARGE / large.seconds,
      loadBaseBytes: (small.service.peakMegabytesWithChildren - megabytesPerName * SMALL) * 1e6,
      loadBytesPerName: megabytesPerName * 1e6,
      cold: await cold(large),
      hot: unlimited.cost,
      limitedHot: (limited as NonNullable<typeof limited>).cost,
      redisMs,
      answerBytes: unlimited.bytes / unlimited.requests,
    };
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
}

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(bytes < 10e9 ? 1 : 0)} GB`;
const cores = (milliseconds: number) => (milliseconds / 1000 / BUSY).toFixed(1);

/** Prints the measured costs and the two tables of docs/evidence/capacity.md. */
function report(m: Measured): void {
  print(`\nMeasured at ${LARGE.toLocaleString('en')} names, Node ${process.version}:`);
  console.table({
    'index, bytes per name': m.bytesPerName.toFixed(0),
    'load, rows a second': m.rowsPerSecond.toFixed(0),
    'memory of the loading process, MB + bytes per name': `${(m.loadBaseBytes / 1e6).toFixed(0)} + ${m.loadBytesPerName.toFixed(0)}`,
    'uncached search, service, ms': m.cold.service.toFixed(2),
    'uncached search, Elasticsearch, ms': m.cold.elasticsearch.toFixed(2),
    'cached search, service, ms': m.hot.service.toFixed(3),
    'the same with limits on Redis, service, ms': m.limitedHot.service.toFixed(3),
    'the same, Redis, ms': m.redisMs.toFixed(3),
    'mean response, bytes': m.answerBytes.toFixed(0),
  });
  print('By number of names:');
  console.table(
    NAMES.map((names) => {
      const copy = names * m.bytesPerName;
      return {
        names: names.toLocaleString('en'),
        'one copy': gigabytes(copy),
        // The previous and the current snapshot, and the new one, which doubles in size while it is merged.
        'disk per copy, during a rebuild': gigabytes(4 * copy),
        'memory for the page cache': gigabytes(copy),
        'rebuild, minutes': (names / m.rowsPerSecond / 60).toFixed(1),
        'memory of the loading process': gigabytes(m.loadBaseBytes + names * m.loadBytesPerName),
      };
    }),
  );
  print(`By searches a second, with processors ${BUSY * 100} % busy:`);
  console.table(
    SEARCHES.flatMap((searches) =>
      HIT_SHARES.map((hits) => ({
        'searches a second': searches.toLocaleString('en'),
        'share cached': `${hits * 100} %`,
        'processors for Elasticsearch': cores(searches * (1 - hits) * m.cold.elasticsearch),
        // Limits add the same cost to every search, cached or not.
        'for the service': cores(
          searches *
            ((1 - hits) * (m.cold.service + m.limitedHot.service - m.hot.service) +
              hits * m.limitedHot.service),
        ),
        'for Redis': cores(searches * m.redisMs),
        'megabit a second': ((searches * m.answerBytes * 8) / 1e6).toFixed(0),
      })),
    ),
  );
}

await withEngines(async ({ elasticsearch, redis, input }) => {
  const measured = await measure(elasticsearch.url, redis.url, input);
  report(measured);
  await writeFile(
    RESULTS,
    `${JSON.stringify({ taken_at: new Date(), quick: QUICK, ...measured }, null, 2)}\n`,
  );
  print(`Written to ${RESULTS}.`);
});
