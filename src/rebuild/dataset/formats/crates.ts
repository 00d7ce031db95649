import type { FileHandle } from 'node:fs/promises';
import { DatasetError } from '../dataset-error.js';
import { CopyReader } from '../documents/copy-csv.js';
import type { Documents } from '../documents/documents.js';
import { NameTable } from '../documents/name-table.js';
import { readTar, type FileReader } from '../documents/tar.js';
import type { Format, ListedPackage } from './format.js';
import { packagesOf } from './packages-of.js';

/** The tables, and the columns of them that are read, in this order. */
const TABLES = {
  crates: ['id', 'name'],
  default_versions: ['crate_id', 'version_id'],
  crate_downloads: ['crate_id', 'downloads'],
  versions: ['id', 'num'],
} as const;

type Table = keyof typeof TABLES;

/** `<date>/data/<table>.csv` and `<date>/metadata.json`. */
const FILE =
  /^(?:\.\/)?[^/]+\/(?:data\/(crates|default_versions|crate_downloads|versions)\.csv|(metadata)\.json)$/;

/**
 * The database dump of crates.io, `db-dump.tar.gz`: a tar of one CSV for each table, as PostgreSQL's `COPY` writes it; its
 * `import.sql` and README list the columns. Files and columns have any order, and columns are added from time to time. The version
 * of a crate is in two tables, of which the one with all versions is large: it is read in a second pass over the stored dump,
 * when it is known which versions are wanted.
 */
export const crates: Format = {
  columns: ['package_no', 'version', 'weight'],
  async *read(documents: Documents): AsyncGenerator<ListedPackage[]> {
    const document = await documents.open(documents.urls[0]);
    const dump = await documents.store(document);
    try {
      /** Crates by id. Their texts begin with `n` (name), `v` (id of the version) or `d` (downloads). */
      const byId = await NameTable.create();
      const add = (mark: string) => (id: string, value: string) => byId.push(byId.add(id), mark + value);
      /** Versions by id, those that are the default of a crate. */
      const versions = await NameTable.create();
      const timestamp = await readTables(documents, dump, {
        crates: add('n'),
        crate_downloads: add('d'),
        default_versions: (crate, version) => {
          add('v')(crate, version);
          versions.add(version);
        },
      });
      document.statedDate = timestamp;
      await readTables(documents, dump, {
        versions: (id, num) => {
          const position = versions.find(id);
          if (position !== -1) versions.push(position, num);
        },
      });
      yield* packagesOf(byId, (position) => {
        const texts = [...byId.textsOf(position)];
        const find = (mark: string) => texts.find((text) => text.startsWith(mark))?.slice(1);
        const [name, version] = [find('n'), find('v')];
        if (name === undefined) return undefined;
        const num = version === undefined ? undefined : versions.lastOf(versions.find(version));
        return { no: byId.nameAt(position), name, version: num, weight: find('d') };
      });
    } finally {
      await dump.close();
    }
  },
};

/** Called with the values of the two columns of a record. */
type OnRecord = (id: string, value: string) => void;

/**
 * Reads some tables of a dump.
 * @returns the date in `metadata.json`.
 */
async function readTables(
  documents: Documents,
  dump: FileHandle,
  onRecord: Partial<Record<Table, OnRecord>>,
): Promise<Date | undefined> {
  const missing = new Set(Object.keys(onRecord));
  let metadata = '';
  await readTar(documents.textOf(dump), (name) => {
    const [, table, isMetadata] = FILE.exec(name) ?? [];
    if (isMetadata !== undefined)
      return { read: (chunk) => (metadata += chunk.toString()), end: () => undefined };
    const use = onRecord[table as Table];
    if (use === undefined) return undefined;
    missing.delete(table as Table);
    return tableReader(table as Table, use);
  });
  const [first] = missing;
  if (first !== undefined)
    throw new DatasetError(`expected a dump of crates.io, but it has no data/${first}.csv`);
  return metadata === '' ? undefined : dateIn(metadata);
}

function tableReader(table: Table, onRecord: OnRecord): FileReader {
  const reader = new CopyReader(TABLES[table]);
  const located = (act: () => void) => {
    try {
      act();
    } catch (error) {
      throw error instanceof DatasetError
        ? new DatasetError(`${table}.csv: ${error.message}`, { cause: error })
        : error;
    }
  };
  return {
    read: (chunk) =>
      located(() => {
        for (const [id = '', value = ''] of reader.read(chunk)) onRecord(id, value);
      }),
    end: () => located(() => reader.end()),
  };
}

/** @returns an invalid date if it has none. */
function dateIn(metadata: string): Date {
  try {
    return new Date((JSON.parse(metadata) as { timestamp?: string } | null)?.timestamp ?? NaN);
  } catch {
    return new Date(NaN);
  }
}
