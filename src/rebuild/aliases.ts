import type { Client, estypes } from '@elastic/elasticsearch';
import { loadingAliasOf, previousAliasOf } from '../search/index-names.js';

/**
 * Moves aliases. Every change is one `_aliases` request, which Elasticsearch applies completely or not at
 * all, and which contains its own precondition (`must_exist`): a process that was suspended for hours and
 * lost its lock without noticing cannot change what another one serves.
 */

/**
 * Serves a finished build instead of `from`, which becomes the previous generation. Fails without effect if the alias does
 * not point to `from`, or if the build or its changes were deleted.
 * @param changes the index of its changes, if there is one.
 */
export async function flip(
  client: Client,
  alias: string,
  from: string | undefined,
  build: string,
  changes?: string,
): Promise<void> {
  const finished = [build, ...(changes === undefined ? [] : [changes])].map((index): Action => ({
    remove: { index, alias: loadingAliasOf(index), must_exist: true },
  }));
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
