import type { SearchBody, Hits } from '../elasticsearch/msearch.js';
import type { Cursor } from './cursor.js';
import { decodeEntry, type EntryGroup } from '../snapshot/package-document.js';
import { exactNames, searchTiers, searchTiersByWeight } from './queries.js';

/** How names match a query: they contain it, start with it, or equal it. */
export const MATCHES = ['contains', 'prefix', 'exact'] as const;

export type Match = (typeof MATCHES)[number];

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

/** Selects one page of a search. */
export interface TieredQuery {
  /** The query text. `Catalog.search` unifies the separators of the text. */
  q: string;
  limit: number;
  /** Whether all matches are counted. Only for a first page. */
  isCounted?: boolean;
  /** Which names match; by default those that contain `q`. */
  match?: Match;
  /** The end of the previous page. */
  after?: Cursor | undefined;
  /**
   * Whether entries of one rank are sorted by weight. `Catalog.search` sets it to false for a snapshot without weights.
   */
  byWeight?: boolean;
}

/**
 * Searches one index. For a first page, all tiers that `match` needs are requested together, with one exception. The
 * last tier (names that contain the query elsewhere) is left out if names that start with the query are likely to fill
 * the page and matches are not counted. A later page begins with the tier of its cursor. If the last tier was not
 * requested and the other tiers return at most `limit` hits, a second request searches the last tier.
 * @param firstTierSuffices whether names that start with the query are likely to fill a first page.
 */
export async function searchTierByTier(
  run: RunSearches,
  query: TieredQuery,
  firstTierSuffices = false,
): Promise<SearchResults> {
  const { limit, after, byWeight = false, isCounted = false, match = 'contains' } = query;
  const all = tiersOf(query);
  const tiers = isCounted ? all.map((tier) => ({ ...tier, track_total_hits: MAX_TOTAL + 1 })) : all;
  const last = match === 'contains' ? tiers.pop() : undefined;
  if (last !== undefined && after?.tier === 'containsElsewhere') {
    return combine([], (await run([last]))[0], limit);
  }
  // All exact names were on earlier pages.
  if (byWeight && match !== 'exact' && after?.tier === 'startsWith') tiers.shift();
  const isLastAsked = last !== undefined && after === undefined && (isCounted || !firstTierSuffices);
  const starting = await run(isLastAsked ? [...tiers, last] : tiers);
  // No name is in two tiers.
  const total = isCounted && { total: starting.reduce((sum, hits) => sum + (hits.total ?? 0), 0) };
  const beside = isLastAsked ? starting.pop() : undefined;
  const found = starting.reduce((sum, { entries }) => sum + entries.length, 0);
  const isLastNeeded = last !== undefined && !isLastAsked && found <= limit;
  return { ...combine(starting, isLastNeeded ? (await run([last]))[0] : beside, limit), ...total };
}

/** The searches of the tiers that `match` needs, best tier first. */
function tiersOf({ q, limit, after, byWeight, match }: TieredQuery): SearchBody[] {
  // One extra hit shows whether more names match, without counting every match.
  const size = limit + 1;
  if (match === 'exact' && byWeight !== true) return [exactNames(q, size, after)];
  const tiers = (byWeight === true ? searchTiersByWeight : searchTiers)(q, size, after);
  if (match === 'exact') return tiers.slice(0, 1);
  return match === 'prefix' ? tiers.slice(0, -1) : tiers;
}

/** The first `limit` entries of all tiers. @param startsWith the tiers of names that start with the query. */
function combine(startsWith: readonly Hits[], elsewhere: Hits | undefined, limit: number): SearchResults {
  const starting = startsWith.flatMap(({ entries }) => entries);
  const exact = startsWith.reduce((sum, hits) => sum + hits.exact, 0);
  const others = elsewhere?.entries ?? [];
  const found = starting.length + others.length;
  const groups: EntryGroup[] = [
    { member: 'rank0', entries: starting.slice(0, Math.min(exact, limit)) },
    { member: 'rank1', entries: starting.slice(exact, limit) },
    { member: 'rank2', entries: others.slice(0, Math.max(0, limit - starting.length)) },
  ];
  return { groups, count: Math.min(found, limit), truncated: found > limit };
}

/**
 * The cursor for the page after these results. The results must not be empty.
 * @param byWeight whether sorting by weight was requested.
 */
export function cursorAfter({ groups }: SearchResults, byWeight = false): Cursor {
  const { entries, member } = groups.findLast((group) => group.entries.length > 0) as EntryGroup;
  const { name, weight } = decodeEntry(entries.at(-1) as string);
  const tier = member === 'rank2' ? 'containsElsewhere' : 'startsWith';
  if (!byWeight) return { tier, name };
  // The results of a snapshot without weights are in name order, which has no tier `equals`.
  return { tier: member === 'rank0' && weight !== undefined ? 'equals' : tier, name, weight: weight ?? 0 };
}
