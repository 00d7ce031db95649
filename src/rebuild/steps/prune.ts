import { errors, type Client } from '@elastic/elasticsearch';
import type { Logger } from '../../log.js';
import {
  changesIndexOf,
  isSnapshotOf,
  isChangesOf,
  loadingAliasOf,
  snapshotIdOf,
} from '../../snapshot/index-names.js';
import type { FoundIndex } from '../../snapshot/snapshot.js';

/**
 * Deletes indices. Every deletion depends on a precondition (`must_exist`) in an `_aliases` request, see `flip.ts`.
 */

/** Lists the indices that rebuilds of this registry created, snapshots and changes, with the names of their aliases. */
export async function listIndices(
  client: Client,
  alias: string,
  signal?: AbortSignal,
): Promise<Map<string, string[]>> {
  const request = { index: `${alias}-*`, features: ['aliases' as const] };
  const found = await client.indices.get(request, signal === undefined ? {} : { signal });
  return new Map(
    Object.entries(found)
      .filter(([index]) => isSnapshotOf(alias, index) || isChangesOf(alias, index))
      .map(([index, { aliases = {} }]) => [index, Object.keys(aliases)]),
  );
}

/**
 * Deletes the index of a failed rebuild, if it exists, and that of its changes. Never throws: the next rebuild deletes what is
 * left.
 */
export async function discardIndex(client: Client, alias: string, index: string, log: Logger): Promise<void> {
  const changes = changesIndexOf(alias, snapshotIdOf(index));
  try {
    await discard(client, index);
    if ((await listIndices(client, alias)).has(changes)) await discard(client, changes);
  } catch (error) {
    log.error({ index, err: error }, 'what the failed rebuild created may be left; the next one tries again');
  }
}

/**
 * Deletes an index that was to be served. Without its loading alias it can never be served, so that is removed first. One that
 * is served after all, because the response to its flip was lost, has no such alias and is kept.
 */
export async function discard(client: Client, index: string): Promise<void> {
  const loading = { index, alias: loadingAliasOf(index), must_exist: true };
  const claimed = await unlessMissing(() => client.indices.updateAliases({ actions: [{ remove: loading }] }));
  if (claimed) await client.indices.delete({ index, ignore_unavailable: true });
}

/** The indices that are kept, and how many indices of changes. */
export interface Kept {
  /** The served index, and the previous one. Of these, undefined ones do not exist. */
  snapshots: readonly (FoundIndex | undefined)[];
  /** CHANGES_RETENTION */
  retention: number;
}

/** Of the indices of a registry, those that neither the snapshots that are kept nor a rollback to them need. */
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
  if (retention === 0) return [];
  // A full chain begins at its last ancestor: the changes that led to that one are not needed.
  const ancestors = meta?.lineage?.ancestors.slice(0, retention - 1) ?? [];
  return [id, ...ancestors].map((one) => changesIndexOf(alias, one));
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

interface PruneOptions {
  /** The index that must be served for anything to be deleted. */
  served: string;
  /** Aborts when the lock is lost or the server stops: the next rebuild deletes the rest. */
  signal: AbortSignal;
  log: Logger;
}

/**
 * Deletes old indices, one request each, on condition that `served` is still being served at that moment. Never throws: the
 * next rebuild deletes the rest.
 * @param indices must have been listed while this process held the lock: those created since belong to others.
 */
export async function prune(
  client: Client,
  alias: string,
  indices: readonly string[],
  { served, signal, log }: PruneOptions,
): Promise<void> {
  try {
    for (const index of indices) {
      if (signal.aborted) return;
      const actions = [
        { remove: { index: served, alias, must_exist: true } },
        { add: { index: served, alias, is_write_index: true } },
        { remove_index: { index } },
      ];
      const deleted = await unlessMissing(() => client.indices.updateAliases({ actions }));
      if (!deleted)
        log.info(
          { index, served },
          'an old index was not deleted: it no longer exists, or another index is served',
        );
    }
  } catch (error) {
    log.warn({ err: error }, 'old indices could not be removed; the next rebuild tries again');
  }
}

/** @returns false if the request was rejected because an alias or an index does not exist. */
async function unlessMissing(request: () => Promise<unknown>): Promise<boolean> {
  try {
    await request();
    return true;
  } catch (error) {
    if (error instanceof errors.ResponseError && error.statusCode === 404) return false;
    throw error;
  }
}
