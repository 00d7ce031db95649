import { changesIndexOf } from '../snapshot/index-names.js';
import type { FoundIndex } from '../snapshot/snapshot.js';

/** The snapshots that are kept, and the maximum length of their chains. */
export interface Kept {
  /** The served index, the previous index, or both. An index that does not exist is undefined. */
  snapshots: readonly (FoundIndex | undefined)[];
  /** CHANGES_RETENTION */
  retention: number;
}

/** The indices of a registry that are neither a kept snapshot nor changes in the chain of a kept snapshot. */
export function obsolete(
  alias: string,
  indices: readonly string[],
  { snapshots, retention }: Kept,
): string[] {
  const needed = snapshots.flatMap((one) => {
    if (one === undefined) return [];
    // A full chain has `retention` ancestors. The oldest one is only a starting point for `/changes`, so its own
    // changes are not needed.
    const chain = [one.id, ...(one.meta?.lineage?.ancestors ?? [])].slice(0, retention);
    return [one.index, ...chain.map((id) => changesIndexOf(alias, id))];
  });
  return indices.filter((index) => !needed.includes(index));
}
