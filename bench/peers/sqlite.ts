import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import type { RankedEntry } from '../../fixtures/search-oracle.js';
import { BY_RANK_AND_NAME, patterns, rankedColumns, type Peer } from './peer.js';

/** Page cache, in KiB: larger than all names and their index. */
const CACHE_KIB = 1_048_576;

/** The trigram index cannot match shorter queries. */
const MIN_TRIGRAM_LENGTH = 3;

const COLUMNS = rankedColumns({ literal: ':literal', prefix: ':prefix' });
const BY_SCAN = `SELECT ${COLUMNS} FROM packages
  WHERE name LIKE :condition ESCAPE '\\' ORDER BY ${BY_RANK_AND_NAME} LIMIT :limit`;
const BY_INDEX = `SELECT ${COLUMNS} FROM packages
  WHERE no IN (SELECT rowid FROM names WHERE names MATCH :condition) ORDER BY ${BY_RANK_AND_NAME} LIMIT :limit`;

/**
 * SQLite in this process, so that it pays neither for HTTP nor for a hop: once with FTS5's trigram index
 * (shorter queries scan all names), and once without an index.
 */
export async function startSqlite(packages: AsyncIterable<PackageEntry>, folder: string): Promise<Peer[]> {
  const database = new DatabaseSync(join(folder, 'packages.sqlite'));
  database.exec(`
    PRAGMA cache_size = -${CACHE_KIB};
    CREATE TABLE packages (no INTEGER PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, url TEXT NOT NULL);
    BEGIN;
  `);
  const insert = database.prepare('INSERT INTO packages VALUES (?, ?, ?, ?)');
  for await (const { no, name, version, url } of packages) insert.run(no, name, version, url);
  database.exec('COMMIT; ANALYZE;');
  const pages = database.prepare(
    'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
  );
  const size = () => (pages.get() as { bytes: number }).bytes;
  const bytesOfTable = size();
  database.exec(`
    CREATE VIRTUAL TABLE names USING fts5(name, content=packages, content_rowid=no, tokenize=trigram);
    INSERT INTO names(names) VALUES ('rebuild');
    INSERT INTO names(names) VALUES ('optimize');
  `);
  const bytesWithIndex = size();
  const scan = database.prepare(BY_SCAN);
  const match = database.prepare(BY_INDEX);

  const byScan = (q: string, limit: number) => {
    const { literal, prefix, infix } = patterns(q);
    return scan.all({ literal, prefix, condition: infix, limit }) as RankedEntry[];
  };
  const byIndex = (q: string, limit: number) => {
    if (q.length < MIN_TRIGRAM_LENGTH) return byScan(q, limit);
    const { literal, prefix } = patterns(q);
    const condition = `"${literal.replaceAll('"', '""')}"`;
    return match.all({ literal, prefix, condition, limit }) as RankedEntry[];
  };
  const close = () => {
    database.close();
    return Promise.resolve();
  };
  return [
    {
      name: 'SQLite, FTS5 trigram',
      search: (q, limit) => Promise.resolve(byIndex(q, limit)),
      bytes: () => Promise.resolve(bytesWithIndex),
      stop: close,
    },
    {
      name: 'SQLite, LIKE',
      search: (q, limit) => Promise.resolve(byScan(q, limit)),
      bytes: () => Promise.resolve(bytesOfTable),
      stop: () => Promise.resolve(),
    },
  ];
}
