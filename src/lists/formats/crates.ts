import { writeFile } from 'node:fs/promises';
import { parseJson } from '../../util/decode.js';
import { DatasetError } from '../fetch/dataset-error.js';
import { CopyReader, PROSE } from '../readers/postgres-copy.js';
import type { Documents } from '../fetch/documents.js';
import { readTar, type FileReader } from '../readers/tar.js';
import { cleanProse } from './package-check.js';
import { NameTable } from './name-table.js';
import { openTemporaryFile } from '../fetch/temporary-file.js';
import { isObject, type Format, type Item } from './list-format.js';

/** The tables that are read, and their needed columns in the order of the values of `OnRecord`. */
const TABLES = {
  crates: ['id', 'name', PROSE],
  default_versions: ['crate_id', 'version_id'],
  crate_downloads: ['crate_id', 'downloads'],
  versions: ['id', 'num'],
} as const;

type TableName = keyof typeof TABLES;

/** Number of characters of `metadata.json` that are kept. It has only two short members. */
const MAX_METADATA = 2 ** 16;

/** Paths in the dump: `<date>/data/<table>.csv` and `<date>/metadata.json`. */
const FILE =
  /^(?:\.\/)?[^/]+\/(?:data\/(crates|default_versions|crate_downloads|versions)\.csv|(metadata)\.json)$/;

/**
 * The database dump of crates.io, `db-dump.tar.gz`: a tar with one CSV for each table, written by PostgreSQL's `COPY`.
 * Its `import.sql` and README list the columns. Files and columns may be in any order, and columns are added from time
 * to time. `default_versions` has the id of each crate's default version, and `versions` has the number of this
 * version. `versions` is large, so it is read in a second pass over the stored dump, when the needed ids are known.
 */
export const crates: Format = {
  place: (at) => (typeof at === 'number' ? `crates.csv: record ${at}` : at),
  async *read(documents: Documents): AsyncGenerator<Item[]> {
    const document = await documents.open();
    const dump = await openTemporaryFile();
    try {
      await writeFile(dump, document.bytes());
      /**
       * Ids of crates, each with the number of its record in `crates.csv`. Each text of a crate begins with `n` (name),
       * `s` (summary), `v` (version id) or `d` (downloads).
       */
      const byId = await NameTable.create();
      const push = (mark: string, id: string, value: string) => byId.push(byId.add(id), mark + value);
      /** Ids of the default versions of crates, each with its version number as text. */
      const versions = await NameTable.create();
      const metadata = yield* readTables(documents.textOf(dump), {
        crates: ([id = '', name = '', description], at) => {
          push('n', id, name);
          byId.setNumber(byId.find(id), at);
          const summary = cleanProse(description);
          if (summary !== '') push('s', id, summary);
        },
        crate_downloads: ([crate = '', downloads = '']) => push('d', crate, downloads),
        default_versions: ([crate = '', version = '']) => {
          push('v', crate, version);
          versions.add(version);
        },
      });
      if (metadata !== '') document.statedDate = dateIn(metadata);
      yield* readTables(documents.textOf(dump), {
        versions: ([id = '', num = '']) => {
          const version = versions.find(id);
          if (version !== 0) versions.push(version, num);
        },
      });
      yield* byId.map((crate) => {
        const texts = [...byId.textsOf(crate)];
        const find = (mark: string) => texts.find((text) => text.startsWith(mark))?.slice(1);
        const [name, version] = [find('n'), find('v')];
        if (name === undefined) return undefined;
        const num = version === undefined ? undefined : versions.lastTextOf(versions.find(version));
        const shared = { at: byId.numberAt(crate), no: byId.nameAt(crate), name, version: num };
        return { ...shared, description: find('s'), weight: find('d') };
      });
    } finally {
      await dump.close();
    }
  },
};

/** Called with the values of a record, and its number. */
type OnRecord = (values: readonly string[], at: number) => void;

/**
 * Reads some tables of a dump, and yields the invalid records.
 * @returns the text of `metadata.json`.
 */
async function* readTables(
  dump: AsyncIterable<Buffer>,
  onRecord: Partial<Record<TableName, OnRecord>>,
): AsyncGenerator<Item[], string> {
  const missing = new Set(Object.keys(onRecord));
  const bad: Item[] = [];
  let metadata = '';
  const readerOf = (path: string): FileReader | undefined => {
    const [, file = '', isMetadata] = FILE.exec(path) ?? [];
    if (isMetadata !== undefined) {
      const read = (chunk: Buffer) => void (metadata = (metadata + chunk.toString()).slice(0, MAX_METADATA));
      return { read, end: () => undefined };
    }
    const table = file as TableName;
    const use = onRecord[table];
    if (use === undefined) return undefined;
    missing.delete(table);
    return new CopyReader(`${table}.csv`, TABLES[table], (record) => {
      if ('reason' in record) bad.push(record);
      else use(record.values, record.at);
    });
  };
  const chunks = readTar(dump, readerOf);
  while ((await chunks.next()).done !== true) yield bad.splice(0);
  const [first] = missing;
  if (first !== undefined)
    throw new DatasetError(`expected a dump of crates.io, but it has no data/${first}.csv`);
  return metadata;
}

/** The date in `metadata.json`; an invalid `Date` if there is none. */
function dateIn(metadata: string): Date {
  const value = parseJson(metadata);
  return new Date(isObject(value) ? String(value['timestamp']) : NaN);
}
