import { DatabaseSync } from 'node:sqlite';
import { lowerCase } from '../../test/fixtures/search-oracle.js';
import { codePoints } from '../../src/util/unicode.js';
import { bodyOf, elsewhere, type Row, type Starting } from './peer.js';

/** In KiB: larger than all names and their index. */
const CACHE_KIB = 1_048_576;

/**
 * Rows are numbered in name order, so that both tiers end as soon as they have their results. The grams of a name are
 * tokens, without positions: FTS5's own trigram tokenizer cannot find two characters, and took three times as long for
 * whole names, which it verifies as phrases of all their trigrams.
 */
const SCHEMA = `
  PRAGMA journal_mode = OFF;
  PRAGMA synchronous = OFF;
  PRAGMA temp_store = MEMORY;
  CREATE TABLE packages (id INTEGER PRIMARY KEY, lower TEXT NOT NULL, entry TEXT NOT NULL);
  CREATE VIRTUAL TABLE grams USING fts5(tokens, content='', columnsize=0, detail=none, tokenize=ascii);
  CREATE TEMP TABLE unsorted (lower TEXT, name TEXT, no INTEGER, entry TEXT);
  BEGIN;`;

const SORT = `
  INSERT INTO packages (lower, entry) SELECT lower, entry FROM unsorted ORDER BY lower, name, no;
  CREATE INDEX packages_lower ON packages (lower);`;

const FINISH = `
  INSERT INTO grams (grams) VALUES ('optimize');
  COMMIT;
  ANALYZE;
  VACUUM;`;

/** U+10FFFF sorts after every other character. */
const STARTING = `SELECT id, entry, lower = :lower AS isExact FROM packages
  WHERE lower >= :lower AND lower < :lower || char(0x10FFFF) ORDER BY lower, id LIMIT :limit`;

/** CROSS JOIN makes SQLite read the index first. */
const ELSEWHERE = `SELECT entry FROM grams CROSS JOIN packages ON id = grams.rowid
  WHERE grams MATCH :tokens AND grams.rowid NOT BETWEEN :first AND :last AND instr(lower, :lower) > 0
  ORDER BY grams.rowid LIMIT :limit`;

/** Creates a database with these names. */
export async function createSqlite(path: string, rows: AsyncIterable<Row>): Promise<void> {
  const database = new DatabaseSync(path);
  database.exec(SCHEMA);
  const insert = database.prepare('INSERT INTO unsorted VALUES (?, ?, ?, ?)');
  for await (const { lower, name, no, entry } of rows) insert.run(lower, name, no, entry);
  database.exec(SORT);
  const index = database.prepare('INSERT INTO grams (rowid, tokens) VALUES (?, ?)');
  const sorted = database.prepare('SELECT id, lower FROM packages ORDER BY id').all({});
  for (const { id, lower } of sorted as { id: number; lower: string }[]) {
    index.run(id, tokensOf(allGrams(lower)));
  }
  database.exec(FINISH);
  database.close();
}

/** Opens the database for searches in this process. */
export function openSqlite(path: string): (q: string, limit: number) => string {
  const database = new DatabaseSync(path, { readOnly: true });
  database.exec(`PRAGMA cache_size = -${CACHE_KIB}; PRAGMA mmap_size = ${CACHE_KIB * 1024};`);
  const findStarting = database.prepare(STARTING);
  const findElsewhere = database.prepare(ELSEWHERE);
  return (q, limit) => {
    const starting = findStarting.all({ lower: lowerCase(q), limit }) as Starting[];
    const rest = elsewhere(q, starting, limit);
    if (rest === undefined) return bodyOf(q, starting, []);
    const { grams, ...values } = rest;
    const others = findElsewhere.all({ ...values, tokens: tokensOf(grams) }) as { entry: string }[];
    return bodyOf(q, starting, others);
  };
}

/** Each two and each three adjacent characters. */
function allGrams(lower: string): Set<string> {
  const characters = codePoints(lower);
  const grams = new Set<string>();
  for (let start = 0; start < characters.length - 1; start++) {
    for (const size of [2, 3]) grams.add(characters.slice(start, start + size).join(''));
  }
  return grams;
}

/** Grams as hexadecimal words, which the tokenizer leaves as they are and a query need not escape. */
function tokensOf(grams: Iterable<string>): string {
  return Array.from(grams, (gram) => Buffer.from(gram).toString('hex')).join(' ');
}
