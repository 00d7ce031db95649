import type { SearchBody } from '../elasticsearch/msearch.js';
import type { Hits } from '../elasticsearch/msearch-response.js';
import type { Cursor } from './cursor.js';
import { decodeEntry, type EntryGroup } from '../snapshot/package-document.js';
import { searchTiers, searchTiersByWeight } from './queries.js';

/** The results of a search: entries by rank, best first. */
export interface SearchResults {
  groups: EntryGroup[];
  count: number;
  /** Whether more names match than were requested. */
  truncated: boolean;
}

/** Runs searches concurrently and returns the hits of each. */
export type RunSearches = (bodies: SearchBody[]) => Promise<Hits[]>;

/** One page of a search. */
export interface TieredQuery {
  /** With unified separators. */
  q: string;
  limit: number;
  /** The end of the previous page. */
  after?: Cursor | undefined;
  /** Whether entries of one rank are sorted by weight. The snapshot must have weights. */
  byWeight?: boolean;
}

/**
 * Searches one index. A first page requests all tiers together, unless names that start with the query are likely to fill it. A
 * later page begins with the tier of its cursor. If the last tier was not requested and the others do not fill the page,
 * it is requested, too.
 * @param firstTierSuffices whether names that start with the query are likely to fill a first page.
 */
export async function searchTierByTier(
  run: RunSearches,
  shards: number,
  { q, limit, after, byWeight = false }: TieredQuery,
  firstTierSuffices = false,
): Promise<SearchResults> {
  // One extra hit shows whether there are more, without counting every match.
  const tiers: SearchBody[] = (byWeight ? searchTiersByWeight : searchTiers)(q, limit + 1, shards, after);
  const last = tiers.pop() as SearchBody;
  if (after?.tier === 'containsElsewhere') return combine([], (await run([last]))[0], limit);
  // Exact names come before all others.
  if (byWeight && after?.tier === 'startsWith') tiers.shift();
  const withoutLast = after !== undefined || firstTierSuffices;
  const starting = await run(withoutLast ? tiers : [...tiers, last]);
  const beside = withoutLast ? undefined : starting.pop();
  const found = starting.reduce((sum, { entries }) => sum + entries.length, 0);
  const elsewhere = withoutLast && found <= limit ? (await run([last]))[0] : beside;
  return combine(starting, elsewhere, limit);
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

/** The cursor after the last entry of results that have one, in the order in which they were requested. */
export function cursorAfter({ groups }: SearchResults, byWeight = false): Cursor {
  const { entries, member } = groups.findLast((group) => group.entries.length > 0) as EntryGroup;
  const { name, weight } = decodeEntry(entries.at(-1) as string);
  const tier = member === 'rank2' ? 'containsElsewhere' : 'startsWith';
  if (!byWeight) return { tier, name };
  // A snapshot without weights is in name order.
  return { tier: member === 'rank0' && weight !== undefined ? 'equals' : tier, name, weight: weight ?? 0 };
}
