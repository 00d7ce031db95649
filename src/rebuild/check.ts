import type { PackageEntry } from '../catalog/entry.js';
import type { Logger } from '../log.js';
import { DatasetError } from './dataset-error.js';
import { Fingerprints } from './fingerprints.js';
import { quote, truncateReason } from './reason.js';
import type { Row } from './rows.js';

/** A dataset of which every row is known to be right. */
export interface CheckedDataset {
  /** How many packages there are, wrong rows that may be skipped left out. */
  total: number;
  /** Lines of the rows that are skipped although they are right by themselves: duplicates of earlier ones. */
  duplicateLines: ReadonlySet<number>;
  /** The first package's URL's host. */
  urlHost: string;
  /** The place of a package number among all of them, from 0. */
  ordinalOf(no: number): number;
}

interface CheckOptions {
  /** How many wrong rows may be skipped. */
  maxBadRows: number;
  log: Logger;
  /** Told how many rows have been read. */
  onRows: (rows: number) => void;
}

/**
 * Reads the whole dataset once, and checks every row by itself and against the others. Memory is about 30 bytes a row:
 * no set of all names is held.
 * @param rows starts reading from the beginning, each time it is called.
 * @throws {DatasetError} naming the line and the reason, as soon as there are more wrong rows than may be skipped.
 */
export async function checkDataset(
  rows: () => AsyncIterable<Row[]>,
  { maxBadRows, log, onRows }: CheckOptions,
): Promise<CheckedDataset> {
  const badRows = new BadRows(maxBadRows, log);
  const names = await Fingerprints.create();
  const repeatedNames = new Set<string>();
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
      if (!names.add(row.entry.name)) repeatedNames.add(row.entry.name);
    }
    onRows((read += batch.length));
  }
  numbers.sort();
  const suspects = { names: repeatedNames, numbers: numbers.repeated() };
  const duplicates = await findDuplicates(rows, suspects, badRows);
  numbers.remove(duplicates.map(({ entry }) => entry.no));
  if (first === undefined) throw new DatasetError('the dataset has a header and no packages');
  return {
    total: numbers.length,
    duplicateLines: new Set(duplicates.map(({ line }) => line)),
    urlHost: new URL(first.url).host,
    ordinalOf: (no) => numbers.indexOf(no),
  };
}

interface Suspects {
  names: ReadonlySet<string>;
  numbers: ReadonlySet<number>;
}

/** Reads again where something seemed to repeat, and finds the rows that really do: all but the first of each. */
async function findDuplicates(rows: () => AsyncIterable<Row[]>, suspects: Suspects, badRows: BadRows) {
  const duplicates: Extract<Row, { entry: unknown }>[] = [];
  if (suspects.names.size === 0 && suspects.numbers.size === 0) return duplicates;
  const lineOfName = new Map<string, number>();
  const lineOfNumber = new Map<number, number>();
  for await (const batch of rows()) {
    for (const row of batch) {
      if ('reason' in row) continue;
      const { no, name } = row.entry;
      const repeated = seenBefore(lineOfName, name, 'name') ?? seenBefore(lineOfNumber, no, 'package_no');
      if (repeated !== undefined) {
        badRows.skip(row.line, repeated);
        duplicates.push(row);
        continue;
      }
      // Only now: a row that is skipped takes neither its name nor its number from a later one.
      if (suspects.names.has(name)) lineOfName.set(name, row.line);
      if (suspects.numbers.has(no)) lineOfNumber.set(no, row.line);
    }
  }
  return duplicates;
}

function seenBefore<T extends string | number>(
  lines: ReadonlyMap<T, number>,
  value: T,
  column: string,
): string | undefined {
  const line = lines.get(value);
  if (line === undefined) return undefined;
  return `${column} ${typeof value === 'string' ? quote(value) : value} was on line ${line} already`;
}

/** Counts the wrong rows, and logs those that are skipped. */
class BadRows {
  #count = 0;

  constructor(
    private readonly max: number,
    private readonly log: Logger,
  ) {}

  /** @throws {DatasetError} beyond the number that may be skipped. */
  skip(line: number, rule: string): void {
    const reason = truncateReason(rule);
    this.#count++;
    if (this.#count > this.max) {
      const allowed =
        this.max === 0 ? '' : ` (and ${this.max} wrong rows before it, which is as many as may be skipped)`;
      throw new DatasetError(`line ${line}: ${reason}${allowed}`);
    }
    this.log.warn({ line, reason }, 'a wrong row of the dataset is skipped');
  }
}

/** Package numbers, 8 bytes each. */
class NumberList {
  #numbers = new Float64Array(2 ** 16);
  #length = 0;
  #ascending = true;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#numbers.length) {
      const larger = new Float64Array(this.#length * 2);
      larger.set(this.#numbers);
      this.#numbers = larger;
    }
    if (this.#length > 0 && value <= this.#at(this.#length - 1)) this.#ascending = false;
    this.#numbers[this.#length++] = value;
  }

  sort(): void {
    this.#numbers = this.#numbers.subarray(0, this.#length);
    if (!this.#ascending) this.#numbers.sort();
  }

  /** Those that stand more than once in the sorted list. */
  repeated(): Set<number> {
    const found = new Set<number>();
    for (let i = 1; i < this.#length; i++) if (this.#at(i) === this.#at(i - 1)) found.add(this.#at(i));
    return found;
  }

  /** Removes each of `values` once from the sorted list. */
  remove(values: number[]): void {
    if (values.length === 0) return;
    const due = new Map<number, number>();
    for (const value of values) due.set(value, (due.get(value) ?? 0) + 1);
    this.#numbers = this.#numbers.filter((value) => {
      const left = due.get(value) ?? 0;
      if (left > 0) due.set(value, left - 1);
      return left === 0;
    });
    this.#length = this.#numbers.length;
  }

  /** The place of a value in the sorted list, by bisection; -1 where it is not. */
  indexOf(value: number): number {
    let low = 0;
    let high = this.#length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const found = this.#at(middle);
      if (found === value) return middle;
      if (found < value) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  #at(index: number): number {
    return this.#numbers[index] as number;
  }
}
