import { unifySeparators, type NameRule } from '../util/name-rule.js';
import type { Match } from './tiered-search.js';

/** Names that match a query as in a search, or names within the distance of look-alikes of another one, itself left out. */
export type NameFilter = { q: string; match: Match } | { like: string };

/** The parameters of a filter, which also identify it. */
export function filterParams(filter: NameFilter | undefined): Record<string, string> {
  if (filter === undefined || 'like' in filter) return { ...filter };
  const { q, match } = filter;
  return match === 'contains' ? { q } : { q, match };
}

/** The parameters as a query string: equal filters have equal ones; empty without a filter. */
export function filterQuery(filter: NameFilter | undefined): string {
  return new URLSearchParams(filterParams(filter)).toString();
}

/** The filter as an index with this rule compares names. */
export function filterBy(rule: NameRule, filter: NameFilter | undefined): NameFilter | undefined {
  if (filter === undefined || 'like' in filter) return filter;
  return { ...filter, q: unifySeparators(rule, filter.q) };
}
