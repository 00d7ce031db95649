import * as z from 'zod';
import type { Cost } from '../http/limits/rate-limit.js';
import { invalidParameter, memoized, parseParams } from '../http/request/query-params.js';
import type { NameFilter } from '../search/name-filter.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { matchParam } from './schemas.js';
import { assertSearchable, queryText } from './search.js';
import { SIMILAR_COST, similarText } from './similar.js';

/** The parameters that select names from a list of changes. */
export const nameFilterParams = z.object({
  q: queryText.optional().meta({
    component: 'filter',
    description: 'Only names that `/search` finds for it.',
  }),
  match: matchParam,
  like: similarText.optional().meta({
    component: 'like',
    description: `Only names that \`/similar\` finds for it. Costs ${SIMILAR_COST} points; not with \`q\`.`,
  }),
});

/** The filter of a request; undefined if it has none. @throws {Problem} 400 if it has two. */
export function nameFilterOf({ q, match, like }: z.output<typeof nameFilterParams>): NameFilter | undefined {
  if (q === undefined) return like === undefined ? undefined : { like };
  if (like !== undefined) throw invalidParameter('like', 'must not be given with q');
  return { q, match };
}

/** @throws {Problem} 400 if a snapshot cannot be searched for the `q` of a filter: see `assertSearchable`. */
export function assertFilterApplies(filter: NameFilter | undefined, snapshot: Snapshot): void {
  if (filter !== undefined && 'q' in filter) assertSearchable(filter.q, filter.match, snapshot);
}

/** The filter of a query string. @throws {Problem} 400 */
export const parseNameFilter = memoized((querystring) => ({
  filter: nameFilterOf(parseParams(nameFilterParams, querystring)),
}));

export const NAME_FILTER_COST = {
  shown: { with_like: SIMILAR_COST },
  of: (querystring: string) => ('like' in (parseNameFilter(querystring).filter ?? {}) ? SIMILAR_COST : 1),
} satisfies Cost;
