import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { makeFolder, type Identity } from '../../src/dev/paths.js';
import { run } from '../../src/dev/run.js';
import { ManagedProcess } from '../../src/dev/managed-process.js';
import type { RankedEntry } from '../../fixtures/search-oracle.js';
import { BY_RANK_AND_NAME, patterns, rankedColumns, type Peer } from './peer.js';

/** Debian installs the programs of each version in a subfolder of this one. */
const PROGRAMS = '/usr/lib/postgresql';
const START_TIMEOUT_MS = 30_000;

/** All names and their index fit into memory, and data need not survive a crash. */
const SETTINGS = [
  'shared_buffers=1GB',
  'work_mem=64MB',
  'maintenance_work_mem=512MB',
  'jit=off',
  'fsync=off',
];

const SEARCH = `SELECT ${rankedColumns({ literal: '$1', prefix: '$2' })} FROM packages
  WHERE lower(name) LIKE $3 ESCAPE '\\' ORDER BY ${BY_RANK_AND_NAME} LIMIT $4`;

interface PostgresqlOptions {
  /** CSV with a header; `runAs` must be able to read it. */
  dataset: string;
  /** Holds data, socket and log. */
  folder: string;
  /** PostgreSQL refuses to run as root. */
  runAs: Identity | undefined;
}

/** PostgreSQL from Debian's package with a pg_trgm index, reached over a Unix socket. */
export async function startPostgresql({ dataset, folder, runAs }: PostgresqlOptions): Promise<Peer> {
  const programs = await findPrograms();
  makeFolder(folder, runAs);
  const data = join(folder, 'data');
  const options = { cwd: folder, env: {}, runAs };
  const initdb = ['-D', data, '-U', 'bench', '--locale=C', '--encoding=UTF8', '--auth=trust'];
  await run(join(programs, 'initdb'), initdb, options);
  const settings = ['listen_addresses=', `unix_socket_directories=${folder}`, ...SETTINGS];
  const command = [join(programs, 'postgres'), '-D', data, ...settings.flatMap((setting) => ['-c', setting])];
  const server = new ManagedProcess(command, { ...options, logFile: join(folder, 'postgresql.log') });
  const accepts = async () => {
    const client = clientOf(folder);
    return client.connect().then(
      () => client.end().then(() => true),
      () => false,
    );
  };
  await server.waitUntil(accepts, 'PostgreSQL', START_TIMEOUT_MS, new AbortController().signal);
  const client = clientOf(folder);
  const stop = async () => {
    await client.end();
    await server.stop();
  };
  try {
    await client.connect();
    await load(client, dataset);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    name: 'PostgreSQL, pg_trgm',
    search: async (q, limit) => {
      const { literal, prefix, infix } = patterns(q);
      const { rows } = await client.query<RankedEntry>(SEARCH, [literal, prefix, infix, limit]);
      return rows;
    },
    bytes: async () => {
      const { rows } = await client.query<{ bytes: string }>(
        "SELECT pg_total_relation_size('packages') AS bytes",
      );
      return Number(rows[0]?.bytes);
    },
    stop,
  };
}

async function load(client: Client, dataset: string): Promise<void> {
  for (const statement of [
    'CREATE EXTENSION pg_trgm',
    'CREATE TABLE packages (no integer PRIMARY KEY, name text NOT NULL, version text NOT NULL, url text NOT NULL)',
    `COPY packages FROM '${dataset}' WITH (FORMAT csv, HEADER)`,
    'CREATE INDEX ON packages USING gin (lower(name) gin_trgm_ops)',
    'VACUUM (ANALYZE, FREEZE) packages',
  ]) {
    await client.query(statement);
  }
}

function clientOf(folder: string): Client {
  const client = new Client({ host: folder, user: 'bench', database: 'postgres' });
  // A failed query reports a lost connection; an "error" event without a listener would end this process.
  client.on('error', () => undefined);
  return client;
}

/** The programs of the newest installed version. */
async function findPrograms(): Promise<string> {
  const versions = await readdir(PROGRAMS).catch((): string[] => []);
  const newest = versions.toSorted((a, b) => Number(b) - Number(a))[0];
  if (newest === undefined) throw new Error('PostgreSQL is not installed: apt-get install postgresql');
  return join(PROGRAMS, newest, 'bin');
}
