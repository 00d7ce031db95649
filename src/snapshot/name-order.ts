import type { SearchBody } from '../elasticsearch/msearch.js';

/**
 * Name order. The index itself is sorted by these fields (mappings/packages.json), so that a search in this order stops as
 * soon as it has its hits.
 */
const BY_NAME = ['name.lowercase', 'name', 'no'];

/** Name order in an index with one shard, which has one segment. No sort field is read. */
const INDEX_ORDER = ['_doc'];

/**
 * Timeout of a search on one shard. It is longer than the service waits, so it only ends searches whose results nobody
 * needs. Partial results count as a failure.
 */
const SHARD_TIMEOUT = '2s';

/** Timeout of a search for a page of a whole snapshot, on one shard. */
export const EXPORT_TIMEOUT = '25s';

/** Timeout of a request for a page of a whole snapshot, in milliseconds: longer than `EXPORT_TIMEOUT`. */
export const EXPORT_TIMEOUT_MS = 30_000;

/** Fetches only the encoded entry, from doc values: most of the cost of a search is the fetch. */
const ONLY_ENTRY = { _source: false, stored_fields: '_none_', docvalue_fields: ['entry'] };

export type Query = Record<string, unknown>;

/**
 * A search for entries, without a total count.
 * @param criteria the query, the order, and members that replace the defaults.
 */
export function hitsOf(size: number, criteria: SearchBody): SearchBody {
  return { ...ONLY_ENTRY, size, track_total_hits: false, timeout: SHARD_TIMEOUT, ...criteria };
}

/**
 * A search for one page in name order, without a total count.
 * @param first sort criteria that precede the name, such as the weight.
 */
export function orderedPage(size: number, shards: number, ...first: Query[]): SearchBody {
  return hitsOf(size, { sort: [...first, ...(shards === 1 ? INDEX_ORDER : BY_NAME)] });
}

/** Clauses of a `bool` query. */
export interface Clauses {
  filter?: Query[];
  must_not?: Query[];
}

/** The clauses of all parts. */
export function allOf(...parts: Clauses[]): Clauses {
  const mustNot = parts.flatMap(({ must_not = [] }) => must_not);
  return {
    filter: parts.flatMap(({ filter = [] }) => filter),
    ...(mustNot.length > 0 ? { must_not: mustNot } : {}),
  };
}

/**
 * Names after `name` in name order; all names if it is undefined. `search_after` is not used, because it needs a sort
 * by value. With clauses, hits keep the order of the index, and the range is found by binary search.
 */
export function namesAfter(name: string | undefined): Clauses {
  if (name === undefined) return {};
  return {
    filter: [{ range: { 'name.lowercase': { gte: name } } }],
    must_not: [sameLowerCase(name, { lte: name })],
  };
}

/** Names up to `name` in name order; all names if it is undefined. */
export function namesUpTo(name: string | undefined): Clauses {
  if (name === undefined) return {};
  return {
    filter: [{ range: { 'name.lowercase': { lte: name } } }],
    must_not: [sameLowerCase(name, { gt: name })],
  };
}

/**
 * Names in `range` that equal `name` if case is ignored. There must be few of them: `must_not` visits every name that
 * it excludes.
 */
function sameLowerCase(name: string, range: Query): Query {
  const equal = { range: { 'name.lowercase': { gte: name, lte: name } } };
  return { bool: { filter: [equal, { range: { name: range } }] } };
}

/**
 * A page of packages in name order, for reading a whole snapshot. It may take longer than a search.
 * @param after the last name of the previous page, if any.
 * @param upTo the last name that the page may contain, if any.
 * @param only restricts the packages, if not all are wanted.
 */
export function entriesInNameOrder(
  size: number,
  shards: number,
  after: string | undefined,
  upTo: string | undefined,
  only: Clauses = {},
): SearchBody {
  const query = { bool: allOf(namesAfter(after), namesUpTo(upTo), only) };
  return { ...orderedPage(size, shards), timeout: EXPORT_TIMEOUT, query };
}
