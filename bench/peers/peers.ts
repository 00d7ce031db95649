import { chmod, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { generatedPackages } from '../../test/fixtures/generated-dataset.js';
import { makeQueries } from '../../test/fixtures/queries.js';
import { lowerCase } from '../../test/fixtures/search-oracle.js';
import { entryMembers } from '../../src/snapshot/package-document.js';
import { withEngines } from '../engines.js';
import { LIMIT, load, uncachedEnv } from '../load.js';
import { ServerProcess } from '../processes.js';
import { checkEqual, compare, SMALL_LIMIT, type Effort, type Queries } from './compare.js';
import { hardQueries } from './hard-queries.js';
import { overHttp, pathOf, type Peer, type Row } from './peer.js';
import { startPostgresql } from './postgresql.js';
import { elasticsearchAsPeer, serviceAsPeer } from './service.js';
import { createSqlite, openSqlite } from './sqlite.js';

/**
 * `npm run bench -- peers` runs the same searches on the service and on databases, each with the best schema that was
 * found for it, and without the service. All results must be equal. Nothing is cached.
 */

const { quick: QUICK } = parseArgs({ options: { quick: { type: 'boolean', default: false } } }).values;
const SIZE = QUICK ? 50_000 : 1_000_000;
const QUERIES_PER_KIND = QUICK ? 10 : 40;
const HARD_QUERIES_PER_KIND = QUICK ? 5 : 20;
const EFFORT: Effort = QUICK
  ? { rounds: 3, warmUp: 2, busyRounds: 1, busy: 1 }
  : { rounds: 9, warmUp: 10, busyRounds: 3, busy: 4 };
const RESULTS = 'bench-peers.json';

await withEngines(async ({ elasticsearch, input, runAs }) => {
  const queries = await makeAllQueries();
  const peers: Peer[] = [];
  try {
    const loaded = await load(SIZE, { env: uncachedEnv(elasticsearch.url), folder: input });
    const service = serviceAsPeer(elasticsearch.url, loaded);
    peers.push(service, await elasticsearchAsPeer(elasticsearch.url, loaded.index));
    peers.push(...(await startSqlite(join(input, 'packages.sqlite'))));
    // PostgreSQL does not run as root.
    await chmod(input, 0o755);
    const folder = join(input, 'postgresql');
    peers.push(await startPostgresql({ rows: rows(), size: SIZE, folder, runAs }));
    peers.push(await startPrepared(service, queries));
    await checkEqual(peers, queries);
    await report(await compare(peers, queries, EFFORT));
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
  }
});

async function makeAllQueries(): Promise<Queries> {
  const names: string[] = [];
  for await (const { name } of generatedPackages(SIZE / 4)) names.push(name);
  return {
    usual: makeQueries(names, QUERIES_PER_KIND).map(({ q }) => q),
    hard: hardQueries(names, HARD_QUERIES_PER_KIND),
  };
}

/** The names as databases load them, not sorted. */
async function* rows(): AsyncGenerator<Row> {
  for await (const entry of generatedPackages(SIZE)) {
    yield { no: entry.no, name: entry.name, lower: lowerCase(entry.name), entry: entryMembers(entry) };
  }
}

/** SQLite in this process, which pays neither for HTTP nor for a hop, and behind Koa. */
async function startSqlite(path: string): Promise<Peer[]> {
  const began = performance.now();
  await createSqlite(path, rows());
  const loaded = {
    loadSeconds: (performance.now() - began) / 1000,
    bytes: async () => (await stat(path)).size,
  };
  const search = openSqlite(path);
  const clock = () => {
    const { user, system } = process.cpuUsage();
    return Promise.resolve((user + system) / 1000);
  };
  return [
    {
      ...loaded,
      name: 'SQLite, tuned, in the process',
      search: (q, limit) => Promise.resolve(search(q, limit)),
      clocks: [clock],
      stop: () => Promise.resolve(),
    },
    {
      ...loaded,
      ...overHttp(
        'SQLite, tuned, behind a bare Koa',
        await ServerProcess.start('bench/peers/koa-sqlite.ts', {}, path),
      ),
    },
  ];
}

/** A server with the responses of the service. */
async function startPrepared(service: Peer, { usual, hard }: Queries): Promise<Peer> {
  const bodies: Record<string, string> = {};
  for (const q of [...usual, ...hard]) {
    for (const limit of [LIMIT, SMALL_LIMIT]) bodies[pathOf(q, limit)] = await service.search(q, limit);
  }
  const server = await ServerProcess.start('bench/peers/koa-prepared.ts', {}, JSON.stringify(bodies));
  return overHttp('floor: a bare Koa, same bytes', server);
}

async function report(results: Awaited<ReturnType<typeof compare>>): Promise<void> {
  console.table(results);
  const taken_at = new Date().toISOString();
  await writeFile(RESULTS, `${JSON.stringify({ taken_at, node: process.version, results }, null, 2)}\n`);
  console.log(`Written to ${RESULTS}.`);
}
