import type { estypes } from '@elastic/elasticsearch';
import { isSnapshotOf, loadingAliasOf, previousAliasOf } from '../snapshot/index-names.js';

/**
 * The actions of `_aliases` requests. Elasticsearch applies all actions of one request, or none, and every request
 * contains its own precondition (`must_exist`): a process that was suspended for hours and lost its lock without noticing cannot
 * change what another one serves.
 */
export type Action = estypes.IndicesUpdateAliasesAction;

/** What a flip moves. */
export interface Flip {
  /** The index that is served; undefined before the first flip. */
  from: string | undefined;
  /** The index that was served before it. */
  previous?: string | undefined;
  /** The finished index. */
  to: string;
  /** The index of its changes, if there is one. */
  changes?: string | undefined;
}

/**
 * Serves a finished index instead of `from`, which becomes the previous snapshot if a rebuild of this registry created it: an
 * operator may have moved the alias to another index.
 */
export function flipActions(alias: string, { from, previous, to, changes }: Flip): Action[] {
  const finished = changes === undefined ? [to] : [to, changes];
  const replaced = from === undefined ? [] : [remove(from, alias)];
  const name = previousAliasOf(alias);
  const forget = (index: string): Action => ({ remove: { index, alias: name, must_exist: false } });
  const isKept = from !== undefined && isSnapshotOf(alias, from);
  const kept = isKept
    ? [forget(`${alias}-*`), forget(previous ?? from), { add: { index: from, alias: name } }]
    : [];
  return [
    ...finished.map((index) => remove(index, loadingAliasOf(index))),
    ...replaced,
    ...kept,
    serve(to, alias),
  ];
}

/** Serves the previous snapshot again; the current one becomes the previous. */
export function swapActions(alias: string, current: string, previous: string): Action[] {
  const name = previousAliasOf(alias);
  return [
    remove(current, alias),
    remove(previous, name),
    { add: { index: current, alias: name } },
    serve(previous, alias),
  ];
}

/** Changes nothing, but makes the request fail unless the index is served. */
export function whileServed(alias: string, index: string): Action[] {
  return [remove(index, alias), serve(index, alias)];
}

/** Keeps an index from ever being served; fails if it is already. */
export function neverServe(index: string): Action[] {
  return [remove(index, loadingAliasOf(index))];
}

/** Removes an alias, which the request fails without. */
function remove(index: string, alias: string): Action {
  return { remove: { index, alias, must_exist: true } };
}

/** An alias has one write index at most: of two concurrent first rebuilds, one fails. */
function serve(index: string, alias: string): Action {
  return { add: { index, alias, is_write_index: true } };
}
