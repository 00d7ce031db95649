import type { PackageEntry } from '../snapshot/package-fields.js';
import { ApiError, listWith, requestJson } from './api.js';

export const MAX_SHOWN = 5;

/** A look-alike with at least this many times the weight is probably the package that was meant. */
const MUCH_MORE = 100;

/** The look-alikes of a package that are used most. @param similar nearest first. */
export function mostUsed(exact: PackageEntry, similar: readonly PackageEntry[]) {
  const enough = MUCH_MORE * Math.max(exact.weight ?? 0, 1);
  return similar
    .toSorted((a, b) => (b.weight ?? 0) - (a.weight ?? 0))
    .slice(0, MAX_SHOWN)
    .map((one) => ({ ...one, isMuchMoreUsed: (one.weight ?? 0) >= enough }));
}

/**
 * Names that are easily mistaken for `query`, nearest first. None if the request fails: the page then stays as it is.
 */
export async function fetchSimilar(
  query: string,
  limit: number,
  signal: AbortSignal,
): Promise<PackageEntry[]> {
  const params = new URLSearchParams({ name: query, sort: 'weight', limit: String(limit) });
  try {
    const isExpected = listWith({ name: params.get('name') });
    const { body } = await requestJson(`similar?${params.toString()}`, isExpected, signal);
    return body['results'] as PackageEntry[];
  } catch (error) {
    if (error instanceof ApiError) return [];
    throw error;
  }
}
