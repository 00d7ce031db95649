import { errors, type Client, type estypes } from '@elastic/elasticsearch';
import type { Logger } from '../log.js';
import { isBuildOf, loadingAliasOf, previousAliasOf } from './index-names.js';

/**
 * Moves aliases and deletes indices. Every change is one `_aliases` request, which Elasticsearch applies completely or not
 * at all, and which contains its own precondition (`must_exist`): a process that was suspended for hours, lost its lock
 * and does not know it yet cannot change what others serve meanwhile.
 */

/** Lists the builds of an alias: every index that a rebuild of this registry created, with the names of its aliases. */
export async function listBuilds(
  client: Client,
  alias: string,
  signal: AbortSignal,
): Promise<Map<string, string[]>> {
  const found = await client.indices.get({ index: `${alias}-*`, features: ['aliases'] }, { signal });
  return new Map(
    Object.entries(found)
      .filter(([index]) => isBuildOf(alias, index))
      .map(([index, { aliases = {} }]) => [index, Object.keys(aliases)]),
  );
}

/**
 * Serves a finished build instead of `from`, which becomes the previous generation. Fails without effect if the alias does
 * not point to `from`, or if the build was deleted.
 */
export async function flip(
  client: Client,
  alias: string,
  from: string | undefined,
  build: string,
): Promise<void> {
  const finished: Action[] = [{ remove: { index: build, alias: loadingAliasOf(build), must_exist: true } }];
  if (from === undefined) return moveAlias(client, alias, build, finished);
  await moveAlias(client, alias, build, [
    ...finished,
    { remove: { index: from, alias, must_exist: true } },
    { remove: { index: `${alias}-*`, alias: previousAliasOf(alias), must_exist: false } },
    { add: { index: from, alias: previousAliasOf(alias) } },
  ]);
}

/** Serves the previous generation again; the current one becomes the previous. Fails without effect if either changed. */
export async function swapWithPrevious(
  client: Client,
  alias: string,
  current: string,
  previous: string,
): Promise<void> {
  const name = previousAliasOf(alias);
  await moveAlias(client, alias, previous, [
    { remove: { index: current, alias, must_exist: true } },
    { remove: { index: previous, alias: name, must_exist: true } },
    { add: { index: current, alias: name } },
  ]);
}

type Action = estypes.IndicesUpdateAliasesAction;

async function moveAlias(client: Client, alias: string, to: string, before: Action[]): Promise<void> {
  try {
    // An alias has one write index at most: of two concurrent first builds, one fails.
    await client.indices.updateAliases({
      actions: [...before, { add: { index: to, alias, is_write_index: true } }],
    });
  } catch (error) {
    // The response may have been lost, or the request retried, after the alias had moved.
    if (!(await client.indices.existsAlias({ name: alias, index: to }))) throw error;
  }
}

/**
 * Deletes the index of a failed build. Without its loading alias a build can never be served, so that is removed first.
 * A build that is served after all, because the response to its flip was lost, has none any more and stays.
 */
export async function discard(client: Client, build: string): Promise<void> {
  const loading = { index: build, alias: loadingAliasOf(build), must_exist: true };
  const claimed = await unlessMissing(() => client.indices.updateAliases({ actions: [{ remove: loading }] }));
  if (claimed) await client.indices.delete({ index: build, ignore_unavailable: true });
}

interface PruneOptions {
  /** The index that must be served for anything to be deleted. */
  served: string;
  /** Aborts when the lock is lost or the server stops: what is left is deleted by the next rebuild. */
  signal: AbortSignal;
  log: Logger;
}

/**
 * Deletes old builds, one request each, on condition that `served` is still being served at that moment.
 * @param builds must have been listed while this process held the lock: what others have created since is theirs.
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
      log.info({ index, served }, 'an old index was not deleted: it is gone, or another is served');
  }
}

/** @returns false if the request was rejected because an alias or an index was not there. */
async function unlessMissing(request: () => Promise<unknown>): Promise<boolean> {
  try {
    await request();
    return true;
  } catch (error) {
    if (error instanceof errors.ResponseError && error.statusCode === 404) return false;
    throw error;
  }
}
