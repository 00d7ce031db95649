import { fetchJson, isLimitNear, isPackage, listOf, type Package } from './api.js';

/** Maximum number of names that are shown. */
const MAX_SHOWN = 5;

/** Number of requested look-alikes. The service sorts by distance first, so the most used names may come late. */
const MAX_REQUESTED = 50;

/** A look-alike with at least this many times the weight is probably the package that was meant. */
const MUCH_MORE = 100;

/** A name that is easily mistaken for a package's name. */
export type LookAlike = Package & { isMuchMoreUsed: boolean };

/** Names to suggest for a query without matches, nearest first. None if the request fails. */
export async function fetchSuggestions(query: string, signal: AbortSignal): Promise<Package[]> {
  return fetchSimilar(query, MAX_SHOWN, signal);
}

/**
 * Names that are easily mistaken for a package's name, most used first. None if the request fails, or if the rate limit
 * is near: the remaining points are reserved for searches.
 */
export async function fetchLookAlikes(original: Package, signal: AbortSignal): Promise<LookAlike[]> {
  if (isLimitNear()) return [];
  return mostUsed(original, await fetchSimilar(original.name, MAX_REQUESTED, signal));
}

/** The look-alikes of a package that are used most. @param similar nearest first. */
export function mostUsed(original: Package, similar: readonly Package[]): LookAlike[] {
  const enough = MUCH_MORE * Math.max(original.weight ?? 0, 1);
  return similar
    .toSorted((a, b) => (b.weight ?? 0) - (a.weight ?? 0))
    .slice(0, MAX_SHOWN)
    .map((one) => ({ ...one, isMuchMoreUsed: (one.weight ?? 0) >= enough }));
}

async function fetchSimilar(name: string, limit: number, signal: AbortSignal): Promise<Package[]> {
  const params = new URLSearchParams({ name, sort: 'weight', limit: String(limit) });
  const isExpected = listOf(isPackage, { name: params.get('name') });
  const result = await fetchJson(`similar?${params.toString()}`, isExpected, signal);
  return 'body' in result ? result.body.results : [];
}
