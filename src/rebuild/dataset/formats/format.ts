import type { Documents } from '../documents/documents.js';
import type { JsonPaths } from '../../../config/json-paths.js';

/** A package of a list. A text that is missing or empty is the default of the CSV. */
export interface ListedPackage {
  name: string;
  /** Its number, if the list has numbers; otherwise it is its position. */
  no?: string | undefined;
  version?: string | undefined;
  url?: string | undefined;
  /** Popularity, such as downloads. */
  weight?: string | undefined;
}

/** A format of lists of packages. */
export interface Format {
  /** Columns that its CSV may have, besides `name`. */
  columns: readonly Column[];
  /**
   * Reads a list while it is transferred.
   * @param paths of `DATASET_JSON`; only `json` needs them.
   * @returns its packages in batches, in the order of the list.
   * @throws {DatasetError} if it is not a complete list in this format. The caller adds which document it is.
   */
  read(documents: Documents, paths: JsonPaths): AsyncIterable<readonly ListedPackage[]>;
}

export type Column = 'package_no' | 'version' | 'url' | 'weight';
