import type { NameTable } from '../documents/name-table.js';
import type { ListedPackage } from './format.js';

/** Packages of a batch: few enough for the memory, enough to make the cost of a batch negligible. */
const BATCH = 1000;

/**
 * The packages of a table, in batches.
 * @param toPackage of a position; undefined if it is none.
 */
export function* packagesOf(
  table: NameTable,
  toPackage: (position: number) => ListedPackage | undefined = (position) => ({
    name: table.nameAt(position),
    version: table.lastOf(position),
  }),
): Generator<ListedPackage[]> {
  for (let start = 0; start < table.size; start += BATCH) {
    const positions = Array.from({ length: Math.min(BATCH, table.size - start) }, (_, i) => start + i);
    yield positions.map(toPackage).filter((one) => one !== undefined);
  }
}
