import type { SearchBody, Hits } from '../elasticsearch/msearch.js';
import type { Cursor } from './cursor.js';
import { decodeEntry, type EntryGroup } from '../snapshot/package-document.js';
import type { Match } from './name-filter.js';
import { exactNames, searchTiers, searchTiersByWeight, wordTiers } from './queries.js';
import { wordsOf } from '../util/typed-text.js';

/** The matches of a query are counted up to this number. */
export const MAX_TOTAL = 10_000;

/** The results of a search: entries by rank or by distance, best first. */
export interface SearchResults {
  groups: EntryGroup[];
  count: number;
  /** Whether more names match than were requested. */
  truncated: boolean;
  /** Number of all matches, if it was requested. Above `MAX_TOTAL`, it is a lower bound. */
  total?: number;
}

/** Runs searches in one request and returns the hits of each. */
export type RunSearches = (bodies: SearchBody[]) => Promise<Hits[]>;

export interface TieredQuery {
  /** The query text. `Catalog.search` unifies the separators of the text. */
  q: string;
  limit: number;
  /** Whether all matches are counted. Only for a first page. */
  isCounted?: boolean;
  /** Which names match; by default those that contain `q`. */
  match?: Match;
  after?: Cursor | undefined;
  /** Sorts entries of one rank by weight. `Catalog.search` sets it to false for a snapshot without weights. */
  byWeight?: boolean;
}

/**
 * Requests all tiers together. If names that start with the query are likely to fill the page, and matches are not
 * counted, the last tier is requested only if the page has room for it.
 */
export async function searchTierByTier(
  run: RunSearches,
  query: TieredQuery,
  isLikelyFull = false,
): Promise<SearchResults> {
  const { limit, isCounted = false, match = 'contains' } = query;
  const all = tiersOf(query);
  const tiers = isCounted ? all.map((tier) => ({ ...tier, track_total_hits: MAX_TOTAL + 1 })) : all;
  const isDeferred = isLikelyFull && match === 'contains' && !isCounted && tiers.length > 1;
  const hits = await run(isDeferred ? tiers.slice(0, -1) : tiers);
  if (isDeferred && entriesOf(hits).length <= limit) hits.push(...(await run(tiers.slice(-1))));
  const found = entriesOf(hits);
  const exact = sum(hits.map((tier) => tier.exact));
  const hasAllRanks = match === 'contains' || match === 'words';
  const elsewhere = hasAllRanks ? entriesOf(hits.slice(tiers.length - 1)).length : 0;
  const starting = found.length - elsewhere;
  const entries = found.slice(0, limit);
  return {
    groups: [
      { member: 'rank0', entries: entries.slice(0, exact) },
      { member: 'rank1', entries: entries.slice(exact, starting) },
      { member: 'rank2', entries: entries.slice(starting) },
    ],
    count: entries.length,
    truncated: found.length > limit,
    // No name is in two tiers.
    ...(isCounted && { total: sum(hits.map(({ total = 0 }) => total)) }),
  };
}

/** The entries of all tiers, best tier first. */
export function entriesOf(hits: readonly Hits[]): string[] {
  return hits.flatMap(({ entries }) => entries);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** The searches of the tiers that `match` needs, best tier first. A later page begins with the tier of its cursor. */
function tiersOf({ q, limit, after, byWeight = false, match = 'contains' }: TieredQuery): SearchBody[] {
  // One extra hit shows whether more names match, without counting every match.
  const size = limit + 1;
  if (match === 'exact' && !byWeight) return [exactNames(q, size, after)];
  const tiers =
    match === 'words'
      ? wordTiers(wordsOf(q), size, after, byWeight)
      : (byWeight ? searchTiersByWeight : searchTiers)(q, size, after);
  const end = tiers.length - { contains: 0, words: 0, prefix: 1, exact: 2 }[match];
  const start = { equals: 0, startsWith: tiers.length - 2, containsElsewhere: tiers.length - 1 };
  // A cursor may be from a snapshot without weights, whose tiers differ: at least one tier is searched.
  return tiers.slice(after && Math.min(start[after.tier], end - 1), end);
}

/** The cursor for the page after these results, which must not be empty. */
export function cursorAfter(
  { groups }: SearchResults,
  { byWeight = false, match }: Pick<TieredQuery, 'byWeight' | 'match'> = {},
): Cursor {
  const { entries, member } = groups.findLast((group) => group.entries.length > 0) as EntryGroup;
  const { name, weight } = decodeEntry(entries.at(-1) as string);
  // The results of a snapshot without weights are in name order, which has no tier `equals` unless words are searched.
  const hasEquals = match === 'words' || (byWeight && weight !== undefined);
  const best = member === 'rank0' && hasEquals ? 'equals' : 'startsWith';
  const tier = member === 'rank2' ? 'containsElsewhere' : best;
  return { tier, name, ...(byWeight && { weight: weight ?? 0 }) };
}
