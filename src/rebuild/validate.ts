import type { PackageEntry } from '../snapshot/package-document.js';
import type { Logger } from '../log.js';
import { BadRows, type SkippedRows } from './bad-rows.js';
import { DatasetError } from './dataset-error.js';
import { findDuplicates, type Suspects } from './duplicates.js';
import { FingerprintSet } from './fingerprint-set.js';
import { NumberList } from './number-list.js';
import type { Row } from './rows.js';

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
  /** Maximum number of invalid rows that may be skipped. */
  maxBadRows: number;
  log: Logger;
  /** Called with the number of rows read so far. */
  onRows: (rows: number) => void;
}

/**
 * Allowance for false positives of `FingerprintSet`, far above the number that occurs. If more repetitions
 * than this are found beyond the rows that may be skipped, the dataset is invalid and the pass ends,
 * which bounds memory.
 */
const MAX_FALSE_REPETITIONS = 100;

/** Repeated numbers collected beyond those that may be skipped, so that the first in the file is reported. */
const MAX_REPEATED_NUMBERS = 100_000;

/**
 * Reads the dataset and checks every row by itself and against the others. Memory is about 30 bytes per row:
 * no set of all names is kept.
 * @param rows starts reading from the beginning on each call.
 * @throws {DatasetError} naming the line and the reason, as soon as too many rows are invalid.
 */
export async function validateDataset(
  rows: () => AsyncIterable<Row[]>,
  { maxBadRows, log, onRows }: ValidationOptions,
): Promise<ValidatedDataset> {
  const badRows = new BadRows(maxBadRows, log);
  const names = await FingerprintSet.create();
  const suspects: Suspects = { names: new Map(), numbers: new Map() };
  const numbers = new NumberList();
  let first: PackageEntry | undefined;
  let read = 0;
  let repetitions = 0;
  for await (const batch of rows()) {
    for (const row of batch) {
      if ('reason' in row) {
        badRows.skip(row.line, row.reason);
        continue;
      }
      first ??= row.entry;
      numbers.push(row.entry.no);
      if (names.add(row.entry.name)) continue;
      repetitions++;
      suspects.names.set(detached(row.entry.name), undefined);
    }
    onRows((read += batch.length));
    if (repetitions > maxBadRows + MAX_FALSE_REPETITIONS) break;
  }
  await numbers.sort();
  const repeated = await numbers.repeated(maxBadRows + MAX_REPEATED_NUMBERS);
  for (const no of repeated) suspects.numbers.set(no, undefined);
  const duplicates = await findDuplicates(rows, suspects, badRows);
  if (repetitions > maxBadRows + MAX_FALSE_REPETITIONS) throw new DatasetError('too many names repeat');
  await numbers.remove(duplicates.map(({ no }) => no));
  if (first === undefined) throw new DatasetError('the dataset has a header and no packages');
  return {
    total: numbers.length,
    duplicateLines: new Set(duplicates.map(({ line }) => line)),
    skipped: badRows.skipped,
    urlHost: new URL(first.url).host,
    ordinalOf: (no) => numbers.indexOf(no),
  };
}

/** Copies a substring, which would otherwise keep the whole text in memory. */
function detached(text: string): string {
  return Buffer.from(text).toString();
}
