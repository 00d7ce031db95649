import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Pool } from 'pg';
import { lowerCase } from '../../test/fixtures/search-oracle.js';
import { ManagedProcess } from '../../dev/managed-process.js';
import { makeFolder, type Identity } from '../../dev/paths.js';
import { run } from '../../dev/run.js';
import { processorTime } from '../processor-time.js';
import { bodyOf, elsewhere, type Peer, type Row, type Starting } from './peer.js';

/** Debian installs the programs of each version in a subfolder of this one. */
const PROGRAMS = '/usr/lib/postgresql';
const START_TIMEOUT_MS = 30_000;
/** More than two processors can use. */
const CONNECTIONS = 4;
const BATCH = 20_000;

/**
 * All names and their index fit into memory, and data need not survive a crash. Statements are planned once. A sequential
 * scan is never faster: the grams of every query are in the index.
 */
const SETTINGS = [
  'shared_buffers=1GB',
  'work_mem=64MB',
  'maintenance_work_mem=512MB',
  'jit=off',
  'fsync=off',
  'enable_seqscan=off',
  'max_parallel_workers_per_gather=0',
  'plan_cache_mode=force_generic_plan',
];

/**
 * A GIN index returns all matches at once, in no order. Therefore the names are in parts, in name order, each several
 * times as large as those before it: a search reads part after part until it has its results.
 */
const PARTS = [1 / 64, 1 / 16, 1 / 4, 1];

/** Grams of two and three characters: pg_trgm finds no two characters, and intersects all trigrams of a query. */
const GRAMS = `CREATE FUNCTION grams(name text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_agg(substr(name, place, size)) FROM generate_series(1, length(name) - 1) place, (VALUES (2), (3)) _(size)
$$`;

const FIND_ELSEWHERE = `CREATE FUNCTION elsewhere(ends int[], q text, q_grams text[], first int, last int, wanted int)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  start int := 0;
  stop int;
  found int;
BEGIN
  FOREACH stop IN ARRAY ends LOOP
    RETURN QUERY SELECT entry FROM packages
      WHERE id > start AND id <= stop AND id NOT BETWEEN first AND last
        AND grams(lower) @> q_grams AND position(q IN lower) > 0
      ORDER BY id LIMIT wanted;
    GET DIAGNOSTICS found = ROW_COUNT;
    wanted := wanted - found;
    EXIT WHEN wanted = 0;
    start := stop;
  END LOOP;
END $$`;

/** U+10FFFF sorts after every other character. */
const STARTING = {
  name: 'starting',
  text: `SELECT id, entry, lower = $1 AS "isExact" FROM packages
    WHERE lower >= $1 AND lower < $1 || chr(1114111) ORDER BY lower, id LIMIT $2`,
};
const ELSEWHERE = { name: 'elsewhere', text: 'SELECT entry FROM elsewhere($1, $2, $3, $4, $5, $6) entry' };

interface PostgresqlOptions {
  rows: AsyncIterable<Row>;
  /** Number of rows. */
  size: number;
  /** Holds data, socket and log. */
  folder: string;
  /** PostgreSQL refuses to run as root. */
  runAs: Identity | undefined;
}

/** PostgreSQL from Debian's package, reached over a Unix socket. */
export async function startPostgresql({ rows, size, folder, runAs }: PostgresqlOptions): Promise<Peer> {
  const programs = await findPrograms();
  makeFolder(folder, runAs);
  const data = join(folder, 'data');
  const options = { cwd: folder, env: {}, runAs };
  // The locale C compares text by code point.
  const initdb = ['-D', data, '-U', 'bench', '--locale=C', '--encoding=UTF8', '--auth=trust'];
  await run(join(programs, 'initdb'), initdb, options);
  const settings = ['listen_addresses=', `unix_socket_directories=${folder}`, ...SETTINGS];
  const command = [join(programs, 'postgres'), '-D', data, ...settings.flatMap((setting) => ['-c', setting])];
  const server = new ManagedProcess(command, { ...options, logFile: join(folder, 'postgresql.log') });
  const pool = new Pool({
    host: folder,
    user: 'bench',
    database: 'postgres',
    max: CONNECTIONS,
    idleTimeoutMillis: 0,
  });
  // A failed query reports a lost connection; an "error" event without a listener would end this process.
  pool.on('error', () => undefined);
  const stop = async () => {
    await pool.end();
    await server.stop();
  };
  const accepts = () =>
    pool.query('SELECT 1').then(
      () => true,
      () => false,
    );
  const ends = PARTS.map((part) => Math.ceil(size * part));
  try {
    await server.waitUntil(accepts, 'PostgreSQL', START_TIMEOUT_MS, new AbortController().signal);
    const began = performance.now();
    await load(pool, rows, ends);
    const loadSeconds = (performance.now() - began) / 1000;
    return {
      name: 'PostgreSQL, tuned, Unix socket',
      search: async (q, limit) => {
        const found = await pool.query<Starting>({ ...STARTING, values: [lowerCase(q), limit] });
        const rest = elsewhere(q, found.rows, limit);
        if (rest === undefined) return bodyOf(q, found.rows, []);
        const values = [ends, rest.lower, rest.grams, rest.first, rest.last, rest.limit];
        const others = await pool.query<{ entry: string }>({ ...ELSEWHERE, values });
        return bodyOf(q, found.rows, others.rows);
      },
      clocks: [() => timeOfAll(data)],
      bytes: () => bytesOf(pool),
      loadSeconds,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function load(pool: Pool, rows: AsyncIterable<Row>, ends: readonly number[]): Promise<void> {
  await pool.query(`
    CREATE UNLOGGED TABLE unsorted (lower text, name text, no int, entry text);
    CREATE TABLE packages (id int NOT NULL, lower text NOT NULL, entry text NOT NULL) PARTITION BY RANGE (id)`);
  for (const [part, end] of ends.entries()) {
    const start = ends[part - 1] ?? 0;
    await pool.query(
      `CREATE TABLE packages_${part} PARTITION OF packages FOR VALUES FROM (${start + 1}) TO (${end + 1})`,
    );
  }
  let batch: Row[] = [];
  const insert = async () => {
    const values = (['lower', 'name', 'no', 'entry'] as const).map((key) => batch.map((row) => row[key]));
    batch = [];
    await pool.query(
      'INSERT INTO unsorted SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::text[])',
      values,
    );
  };
  for await (const row of rows) {
    batch.push(row);
    if (batch.length === BATCH) await insert();
  }
  await insert();
  for (const statement of [
    `INSERT INTO packages SELECT row_number() OVER (ORDER BY lower, name, no), lower, entry FROM unsorted`,
    'DROP TABLE unsorted',
    GRAMS,
    FIND_ELSEWHERE,
    'CREATE INDEX ON packages (lower, id)',
    'CREATE INDEX ON packages USING gin (grams(lower))',
    'VACUUM (ANALYZE, FREEZE) packages',
  ]) {
    await pool.query(statement);
  }
}

async function bytesOf(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ bytes: string }>(
    "SELECT sum(pg_total_relation_size(relid)) AS bytes FROM pg_partition_tree('packages')",
  );
  return Number(rows[0]?.bytes);
}

/** The processor time of the postmaster and its children, one for each connection, in milliseconds. */
async function timeOfAll(data: string): Promise<number> {
  const pid = Number((await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')[0]);
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8'))
    .trim()
    .split(' ')
    .map(Number);
  const times = await Promise.all([pid, ...children].map(processorTime));
  return times.reduce((sum, time) => sum + time, 0);
}

/** The programs of the newest installed version. */
async function findPrograms(): Promise<string> {
  const versions = await readdir(PROGRAMS).catch((): string[] => []);
  const newest = versions.toSorted((a, b) => Number(b) - Number(a))[0];
  if (newest === undefined) throw new Error('PostgreSQL is not installed: apt-get install postgresql');
  return join(PROGRAMS, newest, 'bin');
}
