import { changesIndexOf, loadingAliasOf, snapshotIdOf } from '../../snapshot/index-names.js';
import type { FoundIndex } from '../../snapshot/snapshot.js';

/** The snapshots that are kept, and the maximum length of their chains. */
export interface Kept {
  /** The served index, the previous index, or both. An index that does not exist is undefined. */
  snapshots: readonly (FoundIndex | undefined)[];
  /** CHANGES_RETENTION */
  retention: number;
}

/** The indices of a registry that are neither a kept snapshot nor changes in the chain of a kept snapshot. */
export function obsolete(alias: string, indices: Iterable<string>, { snapshots, retention }: Kept): string[] {
  const needed = new Set(
    snapshots
      .filter((one) => one !== undefined)
      .flatMap((one) => [one.index, ...changesNeeded(alias, one, retention)]),
  );
  return [...indices].filter((index) => !needed.has(index));
}

/** The indices of changes that lead to a snapshot. */
function changesNeeded(alias: string, { id, meta }: FoundIndex, retention: number): string[] {
  // A full chain begins at its oldest snapshot, so the changes of that snapshot are not needed.
  const chain = [id, ...(meta?.lineage?.ancestors ?? [])].slice(0, retention);
  return chain.map((one) => changesIndexOf(alias, one));
}

/**
 * The obsolete indices that killed processes have left. Some were never served, others were not pruned.
 * @param aliases the aliases of each index.
 * @param served the id of the served snapshot.
 */
export function leftovers(
  obsolete: readonly string[],
  aliases: ReadonlyMap<string, readonly string[]>,
  served: string,
): string[] {
  return obsolete.filter(
    (index) =>
      aliases.get(index)?.includes(loadingAliasOf(index)) === true ||
      // An operator may have moved the alias away from a newer index, and may need that index again.
      snapshotIdOf(index) < served,
  );
}
