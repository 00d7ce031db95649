import { errors, type Client, type estypes } from '@elastic/elasticsearch';
import { isSnapshotOf, loadingAliasOf, previousAliasOf } from '../snapshot/index-names.js';

/**
 * An action of an `_aliases` request. Elasticsearch applies all actions of a request, or none. Every request has a
 * precondition: an alias that must exist, or, for a first snapshot, that no other index is served (see `serve`). A
 * process that was suspended and lost its lock therefore cannot change what another one serves.
 */
export type Action = estypes.IndicesUpdateAliasesAction;

/** @returns false if a precondition is not met: an alias or an index does not exist. */
export async function applyActions(client: Client, actions: Action[]): Promise<boolean> {
  try {
    await client.indices.updateAliases({ actions });
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof errors.ResponseError && error.statusCode === 404;
}

export interface Flip {
  /** The index that is served; undefined before the first flip. */
  from: string | undefined;
  /** The index of the previous snapshot before the flip; undefined if there is none. */
  previous?: string | undefined;
  /** The new index, which is complete. */
  to: string;
  changes?: string | undefined;
}

/**
 * The actions that serve a finished index instead of `from`. If a rebuild of this registry created `from`, `from`
 * becomes the previous snapshot. If an operator had moved the alias to an index that no rebuild created, the previous
 * snapshot stays.
 */
export function flipActions(alias: string, { from, previous, to, changes }: Flip): Action[] {
  const finished = changes === undefined ? [to] : [to, changes];
  const replaced = from === undefined ? [] : [remove(from, alias)];
  const name = previousAliasOf(alias);
  // A pattern, because an operator may delete the previous index at any time. The name of a restored one may not match.
  const before = previous === undefined || isSnapshotOf(alias, previous) ? `${alias}-*` : previous;
  const forget: Action = { remove: { index: before, alias: name, must_exist: false } };
  const isKept = from !== undefined && isSnapshotOf(alias, from);
  const kept = isKept ? [forget, { add: { index: from, alias: name } }] : [];
  return [
    ...finished.map((index) => remove(index, loadingAliasOf(index))),
    ...replaced,
    ...kept,
    serve(to, alias),
  ];
}

/** The current snapshot becomes the previous one. */
export function swapActions(alias: string, current: string, previous: string): Action[] {
  const name = previousAliasOf(alias);
  return [
    remove(current, alias),
    remove(previous, name),
    { add: { index: current, alias: name } },
    serve(previous, alias),
  ];
}

/** Leaves the index served, but makes the request fail unless it is. */
export function whileServed(alias: string, index: string): Action[] {
  return [remove(index, alias), serve(index, alias)];
}

/**
 * Removes the loading alias, without which no flip can serve the index. The request fails if the index has no loading
 * alias, for example because it is already served.
 */
export function preventFlip(index: string): Action[] {
  return [remove(index, loadingAliasOf(index))];
}

/** Removes an alias. Without the alias, the request fails. */
function remove(index: string, alias: string): Action {
  return { remove: { index, alias, must_exist: true } };
}

/** An alias has at most one write index, so one of two concurrent first rebuilds fails. */
function serve(index: string, alias: string): Action {
  return { add: { index, alias, is_write_index: true } };
}
