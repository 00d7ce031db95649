import type { Hits } from './msearch-response.js';
import type { EntryGroup } from './package-document.js';
import { searchTiers, type SearchBody } from './queries.js';
import { TierPredictor } from './tier-predictor.js';

/** The answer to a search: entries by rank, best first. */
export interface SearchResults {
  groups: EntryGroup[];
  count: number;
  /** More names match than were asked for. */
  truncated: boolean;
}

/** Runs searches side by side on one index, and returns the hits of each. */
type RunSearches = (bodies: SearchBody[]) => Promise<Hits[]>;

/**
 * Searches one index. Both tiers are requested together, unless the first tier is likely to fill the response: then the
 * second is requested only if it does not.
 * @param odds learns from this search.
 */
export async function searchTierByTier(
  run: RunSearches,
  shards: number,
  q: string,
  limit: number,
  odds = new TierPredictor(),
): Promise<SearchResults> {
  // One more than asked for tells whether the answer is truncated, without counting every match.
  const [first, second] = searchTiers(q, limit + 1, shards);
  const firstAlone = odds.firstTierSuffices(q.length);
  const [startsWith, beside] = await run(firstAlone ? [first] : [first, second]);
  if (startsWith === undefined) throw new Error('a search has no answer');
  const full = startsWith.entries.length > limit;
  odds.record(q.length, full);
  const elsewhere = firstAlone && !full ? (await run([second]))[0] : beside;

  const others = elsewhere?.entries ?? [];
  const found = startsWith.entries.length + others.length;
  const { exact } = startsWith;
  const groups: EntryGroup[] = [
    { rank: 0, entries: startsWith.entries.slice(0, Math.min(exact, limit)) },
    { rank: 1, entries: startsWith.entries.slice(exact, limit) },
    { rank: 2, entries: others.slice(0, Math.max(0, limit - startsWith.entries.length)) },
  ];
  return { groups, count: Math.min(found, limit), truncated: found > limit };
}
