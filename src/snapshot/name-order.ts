import type { SearchBody } from '../elasticsearch/msearch.js';

/**
 * Timeout of a search. The service stops waiting earlier, so this timeout only ends searches whose results
 * nobody needs. Partial results count as a failure.
 */
const SEARCH_TIMEOUT = '2s';

/** Timeout of a search, for exports and comparisons, which read whole snapshots page by page. */
export const EXPORT_TIMEOUT = '25s';

/** Timeout of a request for a page of an export or a comparison, in milliseconds: longer than `EXPORT_TIMEOUT`. */
export const EXPORT_TIMEOUT_MS = 30_000;

/** Fetches only the encoded entry, from doc values: most of the cost of a search is the fetch. */
const ONLY_ENTRY = { _source: false, stored_fields: '_none_', docvalue_fields: ['entry'] };

export type Query = Record<string, unknown>;

/** @param criteria the query, the order, and members that replace the defaults. */
export function hitsOf(size: number, criteria: SearchBody): SearchBody {
  return { ...ONLY_ENTRY, size, track_total_hits: false, timeout: SEARCH_TIMEOUT, ...criteria };
}

/**
 * A search for one page in name order, without a total count. The index is sorted by name (mappings/packages.json) and
 * has one shard of one segment, so the order of its documents is name order. A search in this order reads no sort
 * fields, and stops as soon as it has enough hits.
 * @param first sort criteria that precede the name, such as the weight.
 */
export function orderedPage(size: number, ...first: Query[]): SearchBody {
  return hitsOf(size, { sort: [...first, '_doc'] });
}

export interface Clauses {
  filter?: Query[];
  must_not?: Query[];
}

export function allOf(...parts: Clauses[]): Clauses {
  const mustNot = parts.flatMap(({ must_not = [] }) => must_not);
  return {
    filter: parts.flatMap(({ filter = [] }) => filter),
    ...(mustNot.length > 0 ? { must_not: mustNot } : {}),
  };
}

/**
 * Names after `name` in name order; all names if `name` is undefined. `search_after` would require sorting by the
 * values of fields. With these clauses, hits keep the order of the index, and Elasticsearch finds the range by binary
 * search.
 */
export function namesAfter(name: string | undefined): Clauses {
  if (name === undefined) return {};
  return {
    filter: [{ range: { 'name.lowercase': { gte: name } } }],
    must_not: [sameLowerCase(name, { lte: name })],
  };
}

/** Names up to and including `name` in name order; all names if `name` is undefined. */
export function namesUpTo(name: string | undefined): Clauses {
  if (name === undefined) return {};
  return {
    filter: [{ range: { 'name.lowercase': { lte: name } } }],
    must_not: [sameLowerCase(name, { gt: name })],
  };
}

/**
 * Names in `range` with the same `name.lowercase` as `name`. The query must match only a few names, because `must_not`
 * visits every excluded name.
 */
function sameLowerCase(name: string, range: Query): Query {
  const equal = { range: { 'name.lowercase': { gte: name, lte: name } } };
  return { bool: { filter: [equal, { range: { name: range } }] } };
}

/**
 * @param after the last name of the previous page, if any.
 * @param upTo the last name that the page may contain, if any.
 * @param only clauses that every package must match.
 */
export function entriesInNameOrder(
  size: number,
  after: string | undefined,
  upTo: string | undefined,
  only: Clauses = {},
): SearchBody {
  const query = { bool: allOf(namesAfter(after), namesUpTo(upTo), only) };
  return { ...orderedPage(size), timeout: EXPORT_TIMEOUT, query };
}
