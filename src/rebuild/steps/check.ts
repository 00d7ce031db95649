import type { PackageEntry } from '../../snapshot/package-document.js';
import type { BadRows, SkippedRows } from '../dataset/bad-rows.js';
import { DatasetError } from '../dataset/dataset-error.js';
import { createNameHash, findDuplicates } from '../dataset/duplicates.js';
import { NumberList } from '../dataset/number-list.js';
import type { Row } from '../dataset/rows.js';

/** A dataset whose rows have all been checked. */
export interface ValidatedDataset {
  /** Number of packages, without the skipped rows. */
  total: number;
  /** Lines of duplicates of earlier rows, which are skipped although they are valid by themselves. */
  duplicateLines: ReadonlySet<number>;
  skipped: SkippedRows;
  /** Host of the first package's URL. */
  urlHost: string;
  /** Position of a package number in ascending order, from 0. */
  ordinalOf(no: number): number;
}

interface ValidationOptions {
  /** Counts invalid rows. */
  badRows: BadRows;
  /** Called with the number of rows read so far. */
  onRows: (rows: number) => void;
}

/**
 * Maximum number of repeated names, and of repeated numbers, beyond those that may be skipped. They are sorted by hash and not by
 * line, so that many must be known to report the first one of the file.
 */
const MAX_REPEATED = 100_000;

/**
 * Reads the dataset and checks every row by itself and against the others. Memory is 16 bytes per row, outside
 * the heap: a hash of its name, and its number; and those that repeat, in the heap.
 * @param rows starts reading from the beginning on each call.
 * @throws {DatasetError} naming the line and the reason, as soon as too many rows are invalid.
 */
export async function validateDataset(
  rows: () => AsyncIterable<Row[]>,
  { badRows, onRows }: ValidationOptions,
): Promise<ValidatedDataset> {
  const hashOf = await createNameHash();
  const nameHashes = new NumberList();
  const numbers = new NumberList();
  let first: PackageEntry | undefined;
  let read = 0;
  for await (const batch of rows()) {
    for (const row of batch) {
      if ('reason' in row) {
        badRows.skip(row.line, row.reason);
        continue;
      }
      first ??= row.entry;
      numbers.push(row.entry.no);
      nameHashes.push(hashOf(row.entry.name));
    }
    onRows((read += batch.length));
  }
  nameHashes.sort();
  numbers.sort();
  const max = badRows.max + MAX_REPEATED;
  const suspects = { nameHashes: nameHashes.repeated(max), numbers: numbers.repeated(max) };
  const duplicates = await findDuplicates(rows, suspects, hashOf, badRows);
  if (duplicates.length > 0) numbers.remove(duplicates.map(({ no }) => no));
  if (first === undefined) throw new DatasetError('the dataset has a header and no packages');
  return {
    total: numbers.length,
    duplicateLines: new Set(duplicates.map(({ line }) => line)),
    skipped: badRows.skipped,
    urlHost: new URL(first.url).host,
    ordinalOf: (no) => numbers.indexOf(no),
  };
}
