import type { SearchBody } from '../clients/msearch.js';

/**
 * Name order. The index itself is sorted by these fields (mappings/packages.json), so that a search in this order stops as
 * soon as it has its hits.
 */
const BY_NAME = ['name.lowercase', 'name', 'no'];

/** The same order if the index is one segment: index order, without looking up the sort fields. */
const AS_THEY_LIE = ['_doc'];

/**
 * Timeout of a search on one shard: longer than the service waits, so that it only ends searches that have timed out there.
 * Partial results count as a failure.
 */
export const SHARD_TIMEOUT = '2s';

/** The same for a page of a whole generation. */
const EXPORT_TIMEOUT = '25s';

/** Fetches only the encoded entry from doc values: fetching is most of the cost of a search. */
export const ONLY_ENTRY = { _source: false, stored_fields: '_none_', docvalue_fields: ['entry'] };

export type Query = Record<string, unknown>;

/** A search in name order without a total count. */
export function inNameOrder(size: number, shards: number): SearchBody {
  return {
    ...ONLY_ENTRY,
    size,
    sort: shards === 1 ? AS_THEY_LIE : BY_NAME,
    track_total_hits: false,
    timeout: SHARD_TIMEOUT,
  };
}

interface BoolQuery {
  filter: Query[];
  should?: Query;
  must_not?: Query[];
}

/**
 * Restricts a query to the names after `name` in name order. `search_after` would need a sort by value;
 * filters keep the order of the index, and the range is found by binary search.
 */
export function following(name: string | undefined, { filter, must_not = [], ...rest }: BoolQuery): Query {
  if (name === undefined) return { filter, ...(must_not.length > 0 ? { must_not } : {}), ...rest };
  const notBefore = { range: { 'name.lowercase': { gte: name } } };
  const upToName = { range: { name: { lte: name } } };
  return {
    filter: [...filter, notBefore],
    must_not: [...must_not, { bool: { filter: [sameLowerCase(name), upToName] } }],
    ...rest,
  };
}

function sameLowerCase(name: string): Query {
  return { range: { 'name.lowercase': { gte: name, lte: name } } };
}

/**
 * A page of all packages in name order, for reading a whole generation, which may take longer than a search.
 * @param after the name that the page follows, if any.
 * @param upTo the last name that may be in it, if any.
 */
export function entriesInNameOrder(
  size: number,
  shards: number,
  after: string | undefined,
  upTo: string | undefined,
): SearchBody {
  // `must_not` visits every name that it excludes: it is limited to names with the same lower-case form.
  const end: BoolQuery =
    upTo === undefined
      ? { filter: [] }
      : {
          filter: [{ range: { 'name.lowercase': { lte: upTo } } }],
          must_not: [{ bool: { filter: [sameLowerCase(upTo), { range: { name: { gt: upTo } } }] } }],
        };
  return { ...inNameOrder(size, shards), timeout: EXPORT_TIMEOUT, query: { bool: following(after, end) } };
}
