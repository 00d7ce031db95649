import type { Stats } from 'node:fs';
import { open, readlink, realpath, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { quote } from '../process/reason-text.js';
import type { PackageEntry } from '../../snapshot/package-document.js';
import { datasetHeader, datasetRows } from './dataset-csv.js';
import { NUMBER_COLUMN, readRows } from './rows.js';
import { readText } from './text.js';

/** Maximum size of the text of an earlier dataset, in bytes: enough for 10,000,000 packages. */
const MAX_TEXT_BYTES = 2 ** 31;

/** Any valid one: the URLs of an earlier dataset do not matter. */
const ANY_TEMPLATE = 'https://registry.example/{name}';

/** Rows that are written at once. */
const BATCH = 1000;

/** Positions in a gzip header (RFC 1952, section 2.3). */
const DATE_OFFSET = 4;
const SYSTEM_OFFSET = 9;
/** Instead of the operating system, which zlib writes. */
const UNKNOWN_SYSTEM = 255;

/**
 * Reads the package numbers of an earlier dataset.
 * @param path of a CSV file, plain or gzip.
 * @throws {Error} with the path and the reason if a row is invalid, or a name or number occurs twice.
 */
export async function readNumbers(path: string): Promise<Map<string, number>> {
  const numbers = new Map<string, number>();
  const seen = new Set<number>();
  const onHeader = (columns: readonly string[]) => {
    if (!columns.includes(NUMBER_COLUMN)) throw new Error(`the header has no column \`${NUMBER_COLUMN}\``);
  };
  let file: FileHandle | undefined;
  try {
    file = await open(path);
    for await (const rows of readRows(readText(file, MAX_TEXT_BYTES), ANY_TEMPLATE, onHeader)) {
      for (const row of rows) {
        if ('reason' in row) throw new Error(`line ${row.line}: ${row.reason}`);
        const { no, name } = row.entry;
        if (numbers.has(name)) throw new Error(`line ${row.line}: name ${quote(name)} occurs twice`);
        if (seen.has(no)) throw new Error(`line ${row.line}: package_no ${no} occurs twice`);
        numbers.set(name, no);
        seen.add(no);
      }
    }
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error });
  } finally {
    await file?.close();
  }
  return numbers;
}

/**
 * Numbers packages. Those in `earlier` keep their numbers, and the others get the next ones after its largest number, in
 * the byte order of their names.
 * @param packages are changed.
 */
export function assignNumbers(packages: PackageEntry[], earlier: ReadonlyMap<string, number>): void {
  let last = 0;
  for (const no of earlier.values()) last = Math.max(last, no);
  packages.sort((a, b) => compareBytes(a.name, b.name));
  for (const one of packages) one.no = earlier.get(one.name) ?? ++last;
}

interface WriteOptions {
  /** Is written into the gzip header, in whole seconds. */
  date: Date;
  signal: AbortSignal;
  /** Called with the number of packages written so far. */
  onRows: (rows: number) => void;
}

/** The path that symbolic links lead to, also if nothing is there yet. */
export async function throughLinks(path: string): Promise<string> {
  const found = await ifExists(realpath(path));
  if (found !== undefined) return found;
  const target = await ifExists(readlink(path));
  return target === undefined ? path : throughLinks(resolve(await realpath(dirname(path)), target));
}

/**
 * Writes a dataset as gzip CSV, in the order of the numbers. It has its name only once it is complete. A file that it replaces keeps
 * its mode and owner. Equal packages and dates give equal bytes with the same zlib.
 * @param path of no symbolic link, which would be replaced.
 * @param packages are sorted.
 */
export async function writeDataset(
  path: string,
  packages: PackageEntry[],
  options: WriteOptions,
): Promise<void> {
  packages.sort((a, b) => a.no - b.no);
  // Another run may write to the same path.
  const partial = `${path}.${process.pid}.partial`;
  const replaced = await ifExists(stat(path));
  const file = await open(partial, 'w', replaced?.mode);
  try {
    await writeGzip(file, packages, options)
      .then(() => replaced && keepAccess(file, replaced))
      .finally(() => file.close());
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

async function writeGzip(
  file: FileHandle,
  packages: readonly PackageEntry[],
  { date, signal, onRows }: WriteOptions,
): Promise<void> {
  const gzip = createGzip({ level: constants.Z_BEST_COMPRESSION });
  // The writer gets the error. As a part of the pipeline, it would report a full disk as an AbortError.
  pipeline(Readable.from(linesOf(packages, onRows)), gzip, { signal }).catch(() => undefined);
  await writeFile(file, gzip);
  const seconds = Buffer.alloc(4);
  seconds.writeUInt32LE(Math.floor(date.getTime() / 1000));
  await file.write(seconds, 0, seconds.length, DATE_OFFSET);
  await file.write(Buffer.of(UNKNOWN_SYSTEM), 0, 1, SYSTEM_OFFSET);
}

/** Gives a file the mode of another one and, if this process may do so, its owner. */
async function keepAccess(file: FileHandle, { mode, uid, gid }: Stats): Promise<void> {
  if (process.getuid?.() === 0) await file.chown(uid, gid);
  await file.chmod(mode);
}

/** @returns undefined if there is no such file. */
async function ifExists<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function* linesOf(packages: readonly PackageEntry[], onRows: (rows: number) => void): Generator<string> {
  const columns = { has_package_no: true, has_weights: packages[0]?.weight !== undefined };
  yield datasetHeader(columns);
  for (let start = 0; start < packages.length; start += BATCH) {
    const batch = packages.slice(start, start + BATCH);
    yield datasetRows(batch, columns);
    onRows(start + batch.length);
  }
}

/** Compares two texts by their UTF-8 bytes: by their code points. */
function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const difference = rankOf(a.charCodeAt(i)) - rankOf(b.charCodeAt(i));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Surrogates, which stand for code points beyond U+FFFF, come after all other code units. */
function rankOf(unit: number): number {
  const isSurrogate = unit >= 0xd800 && unit <= 0xdfff;
  return isSurrogate ? unit + 0x10000 : unit;
}
