import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { costPerRequest, repeated, type Contender } from './cost.js';
import { writeDataset } from '../test/fixtures/generated-dataset.js';
import { withEngines } from './engines.js';
import { LIMIT, load, searchPath, type Loaded } from './load.js';
import { ServerProcess } from './processes.js';
import { makeQueries } from '../test/fixtures/queries.js';

/**
 * `npm run bench:guard` fails if a request or a loaded row costs over 10 % more than `bench/budget.json` allows. A cost is
 * the user time, of a row the processor time, divided by that of a minimal baseline in the same run, because clocks and
 * machines differ. Beside the version before, a path could lose 5 % with each release. A cost over its limit is measured up
 * to three times, each time on new processes.
 */

const TOLERANCE = 1.1;
const ATTEMPTS = 3;
const NAMES = 50_000;
/** The cost per row is the difference of two loads, which cancels the cost of starting. */
const MANY_ROWS = 100_000;
const FEW_ROWS = 1_000;
const LOAD_TURNS = 2;
const CONNECTIONS = 8;
const QUERIES_PER_KIND = 100;

/** What the measurements share: the engines, and a registry of generated names. */
interface Setting {
  env: Record<string, string>;
  redis: string;
  folder: string;
  loaded: Loaded;
  queries: { path: string }[];
}

/** Starts servers, compares them, and stops them. */
async function compare(
  subject: Promise<ServerProcess>,
  baseline: Promise<ServerProcess>,
  contenders: (ours: ServerProcess, baseline: ServerProcess) => [Contender, Contender],
): Promise<number> {
  const servers = await Promise.all([subject, baseline]);
  try {
    const cost = await costPerRequest(...contenders(...servers));
    return cost.subject / cost.baseline;
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

function service({ env, loaded }: Setting, cacheBytes: number, more = {}): Promise<ServerProcess> {
  return ServerProcess.start('dist/main.js', {
    ...env,
    REGISTRY_SLUG: loaded.slug,
    CACHE_MAX_BYTES: String(cacheBytes),
    ...more,
  });
}

/** Compares cached responses that are limited on Redis with a Koa that counts by the same library. */
async function limited(setting: Setting, clients: number): Promise<number> {
  const path = searchPath({ q: 'lib' });
  const bytes = await (await fetch(setting.loaded.service.url + path)).text();
  const env = { REDIS_URL: setting.redis, RATE_LIMIT_POINTS: '1000000000', TRUSTED_PROXIES: '127.0.0.1' };
  const requests = (target: string) =>
    Array.from({ length: clients }, (_, i) => ({
      path: target,
      headers: { 'X-Forwarded-For': `10.1.${i >> 8}.${i & 255}` },
    }));
  return compare(
    service(setting, CACHE_BYTES, env),
    ServerProcess.start('bench/baseline-limited.ts', env, bytes),
    (ours, baseline) => [
      { server: ours, requests: requests(path) },
      { server: baseline, requests: requests('/') },
    ],
  );
}

const CACHE_BYTES = 64 * 2 ** 20;

/** Processor time of a process and its children, from start to exit, in seconds. */
async function timeOf(args: string[], env: Record<string, string>): Promise<number> {
  const { PATH, HOME } = process.env;
  const { stderr } = await promisify(execFile)(
    'bash',
    ['-c', 'TIMEFORMAT="%U %S"; time "$0" "$@" >/dev/null', process.execPath, ...args],
    { cwd: fileURLToPath(new URL('..', import.meta.url)), env: { PATH, HOME, ...env } },
  );
  const [user, system] = (stderr.trim().split('\n').at(-1) ?? '').split(' ').map(Number);
  return (user ?? NaN) + (system ?? NaN);
}

const COSTS: Record<string, (setting: Setting) => Promise<number>> = {
  'cached response ÷ bare Koa with the same bytes': async (setting) => {
    const path = searchPath({ q: 'lib' });
    const bytes = await (await fetch(setting.loaded.service.url + path)).text();
    return compare(
      service(setting, CACHE_BYTES),
      ServerProcess.start('bench/baseline-koa.ts', {}, bytes),
      (ours, baseline) => [
        { server: ours, requests: repeated({ path }) },
        { server: baseline, requests: repeated({ path: '/' }) },
      ],
    );
  },
  'limited response ÷ Koa with RateLimiterRedis, one client': (setting) => limited(setting, 1),
  'limited response ÷ Koa with RateLimiterRedis, 10,000 clients': (setting) => limited(setting, 10_000),
  '304 ÷ bare Koa {"ping":"pong"}': async (setting) => {
    const path = searchPath({ q: 'lib' });
    const etag = (await fetch(setting.loaded.service.url + path)).headers.get('ETag') ?? '';
    return compare(
      service(setting, CACHE_BYTES),
      ServerProcess.start('bench/baseline-koa.ts', {}, '{"ping":"pong"}'),
      (ours, baseline) => [
        { server: ours, requests: repeated({ path, headers: { 'If-None-Match': etag } }), status: 304 },
        { server: baseline, requests: repeated({ path: '/' }) },
      ],
    );
  },
  'cold search ÷ bare Koa that relays the same requests': (setting) =>
    compare(
      service(setting, 0),
      ServerProcess.start('bench/baseline-proxy.ts', {
        ELASTICSEARCH_URL: setting.env['ELASTICSEARCH_URL'] as string,
        INDEX: setting.loaded.index,
        LIMIT: String(LIMIT),
        CONNECTIONS: String(CONNECTIONS),
      }),
      (ours, baseline) => [
        { server: ours, requests: setting.queries },
        { server: baseline, requests: setting.queries },
      ],
    ),
  'loaded row ÷ the same lines in bulk requests, unchecked': async ({ env, folder }) => {
    const [few, many] = [join(folder, 'few.csv'), join(folder, 'many.csv')];
    await Promise.all([writeDataset(few, FEW_ROWS), writeDataset(many, MANY_ROWS)]);
    const load = (path: string) =>
      timeOf(['dist/cli/rebuild.js', '--force', '--dataset', pathToFileURL(path).href], {
        ...env,
        REGISTRY_SLUG: 'guard-load',
        // Comparing with the previous load would cost the few rows as much as the many.
        CHANGES_RETENTION: '0',
      });
    const baselineLoad = (path: string) => timeOf(['--import', 'tsx', 'bench/baseline-load.ts', path], env);
    const runs = [() => load(many), () => load(few), () => baselineLoad(many), () => baselineLoad(few)];
    const cheapest = runs.map(() => Infinity);
    for (let turn = 0; turn < LOAD_TURNS; turn++) {
      for (const [i, run] of runs.entries()) cheapest[i] = Math.min(cheapest[i] as number, await run());
    }
    const [loaded = NaN, started = NaN, baselineLoaded = NaN, baselineStarted = NaN] = cheapest;
    return (loaded - started) / (baselineLoaded - baselineStarted);
  },
};

const budget = JSON.parse(await readFile(new URL('budget.json', import.meta.url), 'utf8')) as Record<
  string,
  number
>;
const only = process.argv[2] ?? '';
let passed = 0;
let failed = 0;
await withEngines(async ({ elasticsearch, redis, input }) => {
  const env = {
    ELASTICSEARCH_URL: elasticsearch.url,
    PORT: '0',
    RATE_LIMIT_POINTS: '0',
    LOG_LEVEL: 'info',
  };
  const loaded = await load(NAMES, { env, folder: input });
  const results = await (await fetch(`${loaded.service.url}/browse?limit=500`)).json();
  const names = (results as { results: { name: string }[] }).results.map(({ name }) => name);
  const setting = {
    env,
    redis: redis.url,
    folder: input,
    loaded,
    queries: makeQueries(names, QUERIES_PER_KIND).map((query) => ({ path: searchPath(query) })),
  };
  try {
    for (const [name, measure] of Object.entries(COSTS)) {
      if (!name.includes(only)) continue;
      const allowed = (budget[name] ?? NaN) * TOLERANCE;
      const costs: number[] = [];
      do costs.push(await measure(setting));
      while (Math.min(...costs) > allowed && costs.length < ATTEMPTS);
      const isGood = Math.min(...costs) <= allowed;
      if (isGood) passed++;
      else failed++;
      const measured = costs.map((cost) => cost.toFixed(2)).join(', ');
      console.log(`${isGood ? '  ok   ' : '  OVER '} ${measured} (at most ${allowed.toFixed(2)})  ${name}`);
    }
  } finally {
    await loaded.service.stop();
  }
});
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
