import { unifySeparators, type NameRule } from '../util/name-rule.js';

/** How names match a query: they contain it, start with it, equal it, or contain each of its words. */
export const MATCHES = ['contains', 'prefix', 'exact', 'words'] as const;

export type Match = (typeof MATCHES)[number];

/** Selects the names that match `q` as in a search, or all look-alikes of `like`, without `like` itself. */
export type NameFilter = { q: string; match: Match } | { like: string };

/** The query parameters of a filter. They also identify the filter in cursors and cache keys. */
export function filterParams(filter: NameFilter | undefined): Record<string, string> {
  if (filter === undefined || 'like' in filter) return { ...filter };
  const { q, match } = filter;
  return match === 'contains' ? { q } : { q, match };
}

/** The parameters as a query string, which is equal for equal filters, and empty without a filter. */
export function filterQuery(filter: NameFilter | undefined): string {
  return new URLSearchParams(filterParams(filter)).toString();
}

/** The filter with the separators of `q` unified by the name rule of an index. */
export function filterBy(rule: NameRule, filter: NameFilter | undefined): NameFilter | undefined {
  if (filter === undefined || 'like' in filter) return filter;
  return { ...filter, q: unifySeparators(rule, filter.q) };
}
