import type { DatasetConfig } from '../../config/config.js';
import type { Documents } from '../documents/documents.js';

/** Where something is in its document: the number of its line or item, or its key. */
export type Place = number | string;

/** A package of a list. Values may have any type; one that is missing or empty is the default of the CSV. */
export interface ListedPackage {
  at: Place;
  name: unknown;
  /** Its number, if the list has numbers; otherwise it is its position. */
  no?: unknown;
  version?: unknown;
  url?: unknown;
  /** Popularity, such as downloads. */
  weight?: unknown;
  /** Whether U+FFFD stands for bytes that are not UTF-8: a package that has one cannot be used. */
  isLossy?: boolean;
}

/** What has the place of a package, and is none. */
export interface BadItem {
  at: Place;
  reason: string;
}

export type Item = ListedPackage | BadItem;

/** Settings that a few formats need. */
export type ReadOptions = Pick<DatasetConfig, 'jsonPaths' | 'packageUrlTemplate'>;

/** A format of lists of packages. */
export interface Format {
  /** Where an item is, for people. */
  place: (at: Place) => string;
  /**
   * Reads a list while it is transferred.
   * @returns its items in batches, in the order of the list. Items are checked later.
   * @throws {DatasetError} if it is not a complete list in this format. The caller adds which document it is.
   */
  read: (documents: Documents, options: ReadOptions) => AsyncIterable<readonly Item[]>;
  /** Whether a later version replaces an earlier one of a name that is repeated. Without it, such a name is an error. */
  replaces?: (later: string, earlier: string) => boolean;
}

export const line = (at: Place) => `line ${at}`;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
