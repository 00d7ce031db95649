import type { PackageEntry } from '../snapshot/package-document.js';
import { DatasetError, type BadRows } from './fetch/dataset-error.js';
import { EXTRA_REPEATED } from './number-list.js';
import type { PackageFile } from './package-file.js';
import type { Weights } from './weights.js';
import { quote } from '../util/reason-text.js';

/** Packages that have been checked against each other. */
export interface CheckedPackages {
  /** Number of packages. */
  total: number;
  /** Host of the first package's URL. */
  urlHost: string;
  /** Reads the packages in batches, without duplicates. Can be called more than once. */
  read: () => AsyncIterable<PackageEntry[]>;
  /** Position of a package number in ascending order, from 0. */
  ordinalOf: (no: number) => number;
}

interface CheckOptions {
  /** Counts duplicates. */
  badRows: BadRows;
  /** If given, these weights replace the weights of the list. */
  weights?: Weights | undefined;
  signal: AbortSignal;
}

/**
 * Checks packages against each other, and joins their weights.
 * @throws {DatasetError} naming the place and the reason, as soon as too many rows are invalid.
 */
export async function checkPackages(
  packages: PackageFile,
  { badRows, weights, signal }: CheckOptions,
): Promise<CheckedPackages> {
  const { nameHashes, numbers } = packages;
  numbers.sort();
  const duplicates = await findDuplicates(packages, badRows, signal);
  // Frees memory for later steps: 32 MB with 4,000,000 names.
  if (weights === undefined) nameHashes.clear();
  if (duplicates.size > 0) numbers.remove([...duplicates.values()]);
  const read = async function* () {
    let index = 0;
    for await (const { entries } of packages.read()) {
      signal.throwIfAborted();
      const first = index;
      index += entries.length;
      const kept = duplicates.size === 0 ? entries : entries.filter((_, i) => !duplicates.has(first + i));
      if (weights !== undefined) for (const entry of kept) entry.weight = weights.of(entry.name);
      yield kept;
    }
  };
  for await (const [first] of read()) {
    if (first === undefined) continue;
    const { host: urlHost } = new URL(first.url);
    return { total: numbers.length, urlHost, read, ordinalOf: (no) => numbers.indexOf(no) };
  }
  throw new DatasetError('the list has no packages');
}

/**
 * If a number or a name hash is repeated, reads all packages to find the duplicates: every occurrence of a number or a
 * name but the first. Different names may have the same hash.
 * @returns the numbers of the duplicates, by position in the file.
 */
async function findDuplicates(
  packages: PackageFile,
  badRows: BadRows,
  signal: AbortSignal,
): Promise<Map<number, number>> {
  const duplicates = new Map<number, number>();
  const { repeatedHashes } = packages;
  const numbers = packages.numbers.repeated(badRows.max + EXTRA_REPEATED);
  if (repeatedHashes.size === 0 && numbers.size === 0) return duplicates;
  /**
   * `firstOfName`: the first occurrence of each name with a repeated hash, by canonical name. `placeOfNumber`: the
   * first place of each repeated number.
   */
  const firstOfName = new Map<string, { place: string; name: string }>();
  const placeOfNumber = new Map<number, string>();
  let index = -1;
  for await (const batch of packages.read()) {
    signal.throwIfAborted();
    for (const [i, { no, name }] of batch.entries.entries()) {
      index++;
      const isNameSuspect = repeatedHashes.has(packages.hashOf(name));
      if (!isNameSuspect && !numbers.has(no)) continue;
      const place = packages.placeOf(batch, i);
      const first = firstOfName.get(packages.canonicalOf(name));
      const reason = first
        ? `name ${quote(name)} is already on ${first.place}${first.name === name ? '' : `, as ${quote(first.name)}`}`
        : placeOfNumber.has(no)
          ? `package_no ${no} is already on ${placeOfNumber.get(no)}`
          : undefined;
      if (reason !== undefined) {
        badRows.skip(place, reason);
        duplicates.set(index, no);
        continue;
      }
      // Skipped packages are not recorded: a later package must not count as their duplicate.
      if (isNameSuspect) firstOfName.set(packages.canonicalOf(name), { place, name });
      if (numbers.has(no)) placeOfNumber.set(no, place);
    }
  }
  return duplicates;
}
