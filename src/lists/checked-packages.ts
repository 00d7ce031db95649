import type { PackageEntry } from '../snapshot/package-document.js';
import { DatasetError, type BadRows } from './fetch/dataset-error.js';
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
 * `badRows.max` plus this number is the maximum number of repeated name hashes that are collected. The same maximum
 * applies to repeated package numbers. The smallest values are collected. If more are repeated, the error may not name
 * the first duplicate.
 */
const EXTRA_REPEATED = 100_000;

/**
 * Checks packages against each other, and joins their weights.
 * @throws {DatasetError} naming the place and the reason, as soon as too many rows are invalid.
 */
export async function checkPackages(
  packages: PackageFile,
  { badRows, weights, signal }: CheckOptions,
): Promise<CheckedPackages> {
  const { nameHashes, numbers } = packages;
  nameHashes.sort();
  numbers.sort();
  const duplicates = await findDuplicates(packages, badRows, signal);
  if (duplicates.size > 0) numbers.remove([...duplicates.values()]);
  const read = async function* () {
    let index = 0;
    for await (const { entries } of packages.read()) {
      signal.throwIfAborted();
      const first = index;
      index += entries.length;
      const kept = duplicates.size === 0 ? entries : entries.filter((_, i) => !duplicates.has(first + i));
      weights?.join(kept);
      yield kept;
    }
  };
  let urlHost: string | undefined;
  // With weights, all packages are read, to find the weights whose names no package has.
  for await (const [first] of read()) {
    if (first === undefined) continue;
    urlHost ??= new URL(first.url).host;
    if (weights === undefined) break;
  }
  if (urlHost === undefined) throw new DatasetError('the list has no packages');
  return { total: numbers.length, urlHost, read, ordinalOf: (no) => numbers.indexOf(no) };
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
  const max = badRows.max + EXTRA_REPEATED;
  const nameHashes = packages.nameHashes.repeated(max);
  // Frees memory for later steps: 32 MB with 4,000,000 names.
  packages.nameHashes.clear();
  const numbers = packages.numbers.repeated(max);
  if (nameHashes.size === 0 && numbers.size === 0) return duplicates;
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
      const isNameSuspect = nameHashes.has(packages.hashOf(name));
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
