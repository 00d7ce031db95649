import { changesIndexOf, loadingAliasOf, snapshotIdOf } from '../snapshot/index-names.js';
import type { FoundIndex } from '../snapshot/snapshot.js';

/** The indices that are kept, and how many indices of changes. */
export interface Kept {
  /** The served index, and the previous one. Of these, undefined ones do not exist. */
  snapshots: readonly (FoundIndex | undefined)[];
  /** CHANGES_RETENTION */
  retention: number;
}

/** Of the indices of a registry, those that are neither a snapshot that is kept nor changes in the chain of one. */
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
  // A full chain begins at its oldest snapshot: the changes that led to that one are not needed.
  const chain = [id, ...(meta?.lineage?.ancestors ?? [])].slice(0, retention);
  return chain.map((one) => changesIndexOf(alias, one));
}

/**
 * Of obsolete indices, those that killed processes have left: some were never served, others were not pruned.
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
      // An operator may have moved the alias away from a newer one, and may want it back.
      snapshotIdOf(index) < served,
  );
}
