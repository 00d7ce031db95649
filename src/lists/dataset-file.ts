import { open, rename, rm, writeFile, type FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import { constants, createGzip } from 'node:zlib';
import { OPTIONAL_FIELDS, type PackageEntry } from '../snapshot/package-fields.js';
import type { DatasetConfig } from '../config/config.js';
import { createLogger } from '../util/log.js';
import { canonicalName, type NameRule } from '../util/name-rule.js';
import { checkPackages } from './checked-packages.js';
import { downloadDataset, type DownloadedDataset } from './download.js';
import { BadRows } from './fetch/dataset-error.js';
import { datasetHeader, datasetRows } from './dataset-rows.js';

/** Settings for reading an earlier dataset. Its URLs are ignored, so any valid template is sufficient. */
const EARLIER = {
  format: 'csv',
  packageUrlTemplate: 'https://registry.example/{name}',
  nameRule: 'exact',
  maxBadRows: 0,
} as const;

/** Rows per write. */
const BATCH = 1000;

/** Offset of the date in a gzip header. The compression level and the system follow (RFC 1952, section 2.3). */
const DATE_OFFSET = 4;
const BEST_COMPRESSION = 2;
const UNKNOWN_SYSTEM = 255;

interface Listener {
  onBytes?: (bytes: number) => void;
  onDownloaded?: () => void;
}

/**
 * Reads and checks all packages of a list. The packages are held in memory: 1.1 GB for five million without versions.
 */
export async function readList(
  config: DatasetConfig,
  signal: AbortSignal,
  { onBytes, onDownloaded }: Listener = {},
) {
  const badRows = new BadRows(config.maxBadRows, createLogger('fatal'));
  // The result is undefined only if the origin reports that the dataset is unchanged. Without the option `known`, the
  // origin is not asked.
  const { packages: file, takenAt } = (await downloadDataset(config, signal, {
    badRows,
    onBytes,
  })) as DownloadedDataset;
  try {
    onDownloaded?.();
    const { read } = await checkPackages(file, { badRows, signal });
    const packages: PackageEntry[] = [];
    for await (const entries of read()) packages.push(...entries);
    return { packages, isNumbered: file.check.isNumbered, skipped: badRows.skipped, takenAt };
  } finally {
    await file.close();
  }
}

/**
 * Reads the package numbers of an earlier dataset, by the canonical form of the names.
 * @param path of a CSV file, plain or gzip.
 * @param config of the new dataset.
 * @throws {Error} with the path and the reason.
 */
export async function readNumbers(
  path: string,
  config: DatasetConfig,
  signal: AbortSignal,
): Promise<Map<string, number>> {
  try {
    const list = await readList({ ...config, ...EARLIER, urls: [pathToFileURL(path).href] }, signal);
    if (!list.isNumbered) throw new Error('the header has no column `package_no`');
    return new Map(list.packages.map(({ no, name }) => [canonicalName(config.nameRule, name), no]));
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Numbers packages. Packages in `earlier` keep their numbers. The others get the numbers after the largest number in
 * `earlier`, in the order of the code units of their names.
 * @param packages is modified.
 * @param earlier the result of `readNumbers` with the same name rule.
 */
export function assignNumbers(
  packages: PackageEntry[],
  earlier: ReadonlyMap<string, number>,
  nameRule: NameRule,
): void {
  let last = 0;
  for (const no of earlier.values()) last = Math.max(last, no);
  packages.sort((a, b) => Number(a.name > b.name) - Number(a.name < b.name));
  for (const one of packages) one.no = earlier.get(canonicalName(nameRule, one.name)) ?? ++last;
}

interface WriteOptions {
  /** The date for the gzip header, which stores whole seconds. */
  date: Date;
  signal: AbortSignal;
  /** Called with the number of packages written so far. */
  onRows: (rows: number) => void;
}

/**
 * Writes a dataset as gzip CSV, in the order of the numbers. The file gets its name once it is complete. Equal packages
 * and dates give equal bytes with the same zlib.
 * @param path of a new file, which replaces an old file or a symbolic link.
 * @param packages is sorted in place.
 */
export async function writeDataset(
  path: string,
  packages: PackageEntry[],
  options: WriteOptions,
): Promise<void> {
  packages.sort((a, b) => a.no - b.no);
  // The name has the process id, because another process may write to the same path.
  const partial = `${path}.${process.pid}.partial`;
  const file = await open(partial, 'w');
  try {
    await writeGzip(file, packages, options).finally(() => file.close());
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
  // An error of the pipeline is ignored here, because `writeFile` throws it. If the file were part of the pipeline, a
  // full disk would be reported as an AbortError.
  pipeline(Readable.from(linesOf(packages, onRows)), gzip, { signal }).catch(() => undefined);
  await writeFile(file, gzip);
  const header = Buffer.of(0, 0, 0, 0, BEST_COMPRESSION, UNKNOWN_SYSTEM);
  header.writeUInt32LE(Math.floor(date.getTime() / 1000));
  await file.write(header, 0, header.length, DATE_OFFSET);
}

function* linesOf(packages: readonly PackageEntry[], onRows: (rows: number) => void): Generator<string> {
  const optional = OPTIONAL_FIELDS.filter((field) => packages.some((one) => one[field] !== undefined));
  const columns = { isNumbered: true, optional };
  yield datasetHeader(columns);
  for (let start = 0; start < packages.length; start += BATCH) {
    const batch = packages.slice(start, start + BATCH);
    yield datasetRows(batch, columns);
    onRows(start + batch.length);
  }
}
