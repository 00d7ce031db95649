import { errors, type Client } from '@elastic/elasticsearch';
import type { Logger } from '../../log.js';
import {
  changesIndexOf,
  isBuildOf,
  isChangesOf,
  loadingAliasOf,
  snapshotIdOf,
} from '../../snapshot/index-names.js';

/**
 * Deletes indices. Every deletion depends on a precondition (`must_exist`) in an `_aliases` request, see
 * `aliases.ts`.
 */

/** Lists the indices that rebuilds of this registry created, builds and changes, with the names of their aliases. */
export async function listIndices(
  client: Client,
  alias: string,
  signal?: AbortSignal,
): Promise<Map<string, string[]>> {
  const request = { index: `${alias}-*`, features: ['aliases' as const] };
  const found = await client.indices.get(request, signal === undefined ? {} : { signal });
  return new Map(
    Object.entries(found)
      .filter(([index]) => isBuildOf(alias, index) || isChangesOf(alias, index))
      .map(([index, { aliases = {} }]) => [index, Object.keys(aliases)]),
  );
}

/** Deletes the index of a failed build, and that of its changes. @throws {Error} if either may be left. */
export async function discardBuild(client: Client, alias: string, build: string): Promise<void> {
  const changes = changesIndexOf(alias, snapshotIdOf(build));
  await discard(client, build);
  if ((await listIndices(client, alias)).has(changes)) await discard(client, changes);
}

/**
 * Deletes the index of a failed build. Without its loading alias a build can never be served, so that is removed first.
 * A build that is served after all, because the response to its flip was lost, has no such alias and is kept.
 */
export async function discard(client: Client, build: string): Promise<void> {
  const loading = { index: build, alias: loadingAliasOf(build), must_exist: true };
  const claimed = await unlessMissing(() => client.indices.updateAliases({ actions: [{ remove: loading }] }));
  if (claimed) await client.indices.delete({ index: build, ignore_unavailable: true });
}

interface PruneOptions {
  /** The index that must be served for anything to be deleted. */
  served: string;
  /** Aborts when the lock is lost or the server stops: the next rebuild deletes the rest. */
  signal: AbortSignal;
  log: Logger;
}

/**
 * Deletes old builds, one request each, on condition that `served` is still being served at that moment.
 * @param builds must have been listed while this process held the lock: builds created since belong to
 * others.
 */
export async function prune(
  client: Client,
  alias: string,
  builds: readonly string[],
  { served, signal, log }: PruneOptions,
): Promise<void> {
  for (const index of builds) {
    if (signal.aborted) return;
    const deleted = await unlessMissing(() =>
      client.indices.updateAliases({
        actions: [
          { remove: { index: served, alias, must_exist: true } },
          { add: { index: served, alias, is_write_index: true } },
          { remove_index: { index } },
        ],
      }),
    );
    if (!deleted)
      log.info(
        { index, served },
        'an old index was not deleted: it no longer exists, or another index is served',
      );
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
