import type { DatasetConfig } from '../../config/config.js';
import type { OptionalField } from '../../snapshot/package-fields.js';
import type { Documents } from '../fetch/documents.js';

/** A place in a document: the number of a line or item, or a key. */
export type Place = number | string;

/** A package of a list. Values may have any type. Missing and empty values have the same defaults in all formats. */
export interface ListedPackage extends Partial<Record<OptionalField, unknown>> {
  at: Place;
  name: unknown;
  /** The package number, if the list has numbers; otherwise, the position is used. */
  no?: unknown;
  version?: unknown;
  url?: unknown;
  /** Whether U+FFFD may stand for bytes that are not UTF-8. A package with U+FFFD is then invalid. */
  isLossy?: boolean;
  /** Whether its version is one of R. */
  isR?: boolean;
}

/** A package, or the reason why an item of a list cannot be read as one. */
export type Item = ListedPackage | { at: Place; reason: string };

/** Settings that a few formats need. */
export type ReadOptions = Pick<DatasetConfig, 'jsonPaths' | 'nameRule' | 'packageUrlTemplate'>;

/** How lists of a format are read. `config/dataset-format` has the other traits of formats. */
export interface Format {
  /** The place of an item, as text; `line <at>` by default. */
  place?: (at: Place) => string;
  /**
   * Reads a list while it is transferred.
   * @returns its items in batches. Packages without `no` are in the order of the list. Items are checked later.
   * @throws {DatasetError} if the list is not complete or not in this format. The caller adds the name of the document.
   */
  read: (documents: Documents, options: ReadOptions) => AsyncIterable<readonly Item[]>;
  /**
   * Whether a later version of a repeated name replaces an earlier one. Without this function, a repeated name is an
   * error, unless `read` yields it once.
   * @param item the later package.
   */
  replaces?: (later: string, earlier: string, item: ListedPackage) => boolean;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
