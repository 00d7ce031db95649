import type { PackageEntry } from '../search/package-document.js';
import type { Logger } from '../log.js';
import { BadRows } from './bad-rows.js';
import { DatasetError } from './dataset-error.js';
import { findDuplicates, type Suspects } from './duplicates.js';
import { FingerprintSet } from './fingerprint-set.js';
import { NumberList } from './number-list.js';
import type { Row } from './rows.js';

/** A dataset of which every row is known to be right. */
export interface ValidatedDataset {
  /** How many packages there are, wrong rows that may be skipped left out. */
  total: number;
  /** Lines of the rows that are skipped although they are right by themselves: duplicates of earlier ones. */
  duplicateLines: ReadonlySet<number>;
  /** The first package's URL's host. */
  urlHost: string;
  /** The place of a package number among all of them, from 0. */
  ordinalOf(no: number): number;
}

interface ValidationOptions {
  /** How many wrong rows may be skipped. */
  maxBadRows: number;
  log: Logger;
  /** Called with the number of rows read so far. */
  onRows: (rows: number) => void;
}

/**
 * Names that may be taken for repeated ones by mistake: far more than ever occur (see `Fingerprints`). Once as many more
 * rows seem to repeat a name than may be skipped, the dataset is invalid, and the rest of it is not read: no list of half
 * its names is held.
 */
const MAX_FALSE_REPETITIONS = 100;

/** Repeated numbers that are looked for beyond those that may be skipped, so that the first in the file is the one named. */
const MAX_REPEATED_NUMBERS = 100_000;

/**
 * Reads the whole dataset once, and checks every row by itself and against the others. Memory is about 30 bytes a row:
 * no set of all names is held.
 * @param rows starts reading from the beginning, each time it is called.
 * @throws {DatasetError} naming the line and the reason, as soon as there are more wrong rows than may be skipped.
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
    urlHost: new URL(first.url).host,
    ordinalOf: (no) => numbers.indexOf(no),
  };
}

/** A copy of a part of a text that does not keep the whole of it in memory. */
function detached(text: string): string {
  return Buffer.from(text).toString();
}
