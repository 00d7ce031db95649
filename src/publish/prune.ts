import { errors, type Client, type estypes } from '@elastic/elasticsearch';
import { changesIndexOf, isChangesOf, isSnapshotOf, snapshotIdOf } from '../snapshot/index-names.js';
import type { FoundIndex } from '../snapshot/snapshot.js';
import { applyActions, preventFlip, whileServed } from './alias-actions.js';
import type { PublishContext } from './publish.js';
import type { RetryOptions } from './retry.js';

/** Deletes indices. Every deletion depends on an `_aliases` request with a precondition: see `alias-actions.ts`. */

/** Lists the indices that rebuilds of this registry created: snapshots and changes. */
export async function listIndices(client: Client, alias: string, signal: AbortSignal): Promise<string[]> {
  const request: estypes.IndicesGetRequest = {
    index: `${alias}-*`,
    features: ['aliases'],
    // Without `closed`, a closed index would never be deleted.
    expand_wildcards: ['open', 'closed'],
  };
  const found = await client.indices.get(request, { signal });
  return Object.keys(found).filter((index) => isSnapshotOf(alias, index) || isChangesOf(alias, index));
}

/**
 * The indices of a registry that are neither a kept snapshot nor changes in the chain of a kept snapshot.
 * @param kept the served index, the previous index, or both. An index that does not exist is undefined.
 * @param retention CHANGES_RETENTION: the maximum length of a chain.
 */
export function obsolete(
  alias: string,
  indices: readonly string[],
  kept: readonly (FoundIndex | undefined)[],
  retention: number,
): string[] {
  const needed = kept.flatMap((one) => {
    if (one === undefined) return [];
    // The oldest snapshot of a chain is only a starting point for `/changes`, so its own changes are not needed.
    const { ancestors = [] } = one.meta?.lineage ?? {};
    const chain = [one.id, ...ancestors].slice(0, Math.min(retention, ancestors.length));
    return [one.index, ...chain.map((id) => changesIndexOf(alias, id))];
  });
  return indices.filter((index) => !needed.includes(index));
}

/**
 * Deletes the indices of a failed rebuild, if they exist: the index of the snapshot and the index of the changes. Never
 * throws: the next rebuild deletes leftovers.
 */
export async function discardSnapshot({ client, alias, log }: PublishContext, index: string): Promise<void> {
  try {
    await discard(client, index);
    await discard(client, changesIndexOf(alias, snapshotIdOf(index)));
  } catch (error) {
    log.error({ index, err: error }, 'what the failed rebuild created may be left; the next one tries again');
  }
}

/**
 * Deletes an index of a failed rebuild. First removes the loading alias of the index: without it, the index can never
 * be served. An index that has no loading alias is kept: it may be served, if the response to the flip was lost.
 */
export async function discard(client: Client, index: string): Promise<void> {
  if (await applyActions(client, preventFlip(index)))
    await client.indices.delete({ index, ignore_unavailable: true });
}

interface PruneOptions extends Pick<RetryOptions, 'signal' | 'log'> {
  /** The index that must still be served. Undefined if nothing is served. */
  current: string | undefined;
}

/**
 * Deletes old indices with one request each, on condition that `current` is still served, or, without one, that they
 * have their loading alias. Never throws: the next rebuild deletes the rest.
 * @param indices must have been listed while this process held the lock: later indices belong to other processes.
 */
export async function prune(
  client: Client,
  alias: string,
  indices: readonly string[],
  { current, signal, log }: PruneOptions,
): Promise<void> {
  for (const index of indices) {
    if (signal.aborted) return;
    try {
      // Without effect if the index no longer exists, or another index is served.
      if (current === undefined) await discard(client, index);
      else await applyActions(client, [...whileServed(alias, current), { remove_index: { index } }]);
    } catch (error) {
      log.warn({ index, err: error }, 'an old index could not be removed; the next rebuild tries again');
      // An index that is being backed up cannot be deleted, but others can. Without a response, all would wait.
      if (!(error instanceof errors.ResponseError)) return;
    }
  }
}
