import type { SearchBody } from '../clients/msearch.js';
import type { Hits } from '../clients/msearch-response.js';
import type { Cursor } from './cursor.js';
import { decodeEntry, type EntryGroup } from '../snapshot/package-document.js';
import { searchTiers } from './queries.js';

/** The results of a search: entries by rank, best first. */
export interface SearchResults {
  groups: EntryGroup[];
  count: number;
  /** Whether more names match than were requested. */
  truncated: boolean;
}

const NONE: Hits = { entries: [], exact: 0 };

/** Runs searches concurrently and returns the hits of each. */
export type RunSearches = (bodies: SearchBody[]) => Promise<Hits[]>;

/** One page of a search. */
export interface TieredQuery {
  q: string;
  limit: number;
  /** The end of the previous page. */
  after?: Cursor | undefined;
}

/**
 * Searches one index. A first page requests both tiers together, unless the first tier is likely to fill it. A
 * later page begins with the tier of its cursor. If the first tier was requested alone and does not fill the page,
 * the second is requested, too.
 * @param firstTierSuffices whether the first tier is likely to fill a first page.
 */
export async function searchTierByTier(
  run: RunSearches,
  shards: number,
  { q, limit, after }: TieredQuery,
  firstTierSuffices = false,
): Promise<SearchResults> {
  // One extra hit shows whether there are more, without counting every match.
  const [first, second] = searchTiers(q, limit + 1, shards, after);
  if (after?.tier === 'containsElsewhere') {
    const [elsewhere] = await run([second]);
    return combine(NONE, elsewhere, limit);
  }
  const firstAlone = after !== undefined || firstTierSuffices;
  const [startsWith, beside] = (await run(firstAlone ? [first] : [first, second])) as [Hits, Hits?];
  const full = startsWith.entries.length > limit;
  const elsewhere = firstAlone && !full ? (await run([second]))[0] : beside;
  return combine(startsWith, elsewhere, limit);
}

/** The first `limit` entries of both tiers. */
function combine({ entries: starting, exact }: Hits, elsewhere: Hits = NONE, limit: number): SearchResults {
  const others = elsewhere.entries;
  const found = starting.length + others.length;
  const groups: EntryGroup[] = [
    { member: 'rank0', entries: starting.slice(0, Math.min(exact, limit)) },
    { member: 'rank1', entries: starting.slice(exact, limit) },
    { member: 'rank2', entries: others.slice(0, Math.max(0, limit - starting.length)) },
  ];
  return { groups, count: Math.min(found, limit), truncated: found > limit };
}

/** The cursor after the last entry of results that have one. */
export function cursorAfter({ groups }: SearchResults): Cursor {
  const { entries, member } = groups.findLast((group) => group.entries.length > 0) as EntryGroup;
  const tier = member === 'rank2' ? 'containsElsewhere' : 'startsWith';
  return { tier, name: decodeEntry(entries.at(-1) as string).name };
}
