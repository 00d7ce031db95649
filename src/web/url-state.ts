/** Initial and maximum `limit` of a search. The service sends at most `MAX_LIMIT` matches in one response. */
export const INITIAL_LIMIT = 50;
export const MAX_LIMIT = 500;

/** The order of matches of equal rank: most used first, or by name. Without weights, both orders are equal. */
export type Sort = 'weight' | 'name';

/** Matches of a query. */
export interface SearchView {
  query: string;
  sort: Sort;
  limit: number;
}

/** The view in the URL: matches of a query, a page of all packages, or the latest changes. */
export type ViewState = SearchView | { page: number } | { changes: true };

/** Trims characters with the Unicode property White_Space, like the service. */
export function trimmed(query: string): string {
  return query.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '');
}

/** Parses `?q=redis`, `?changes` or `?page=3`; without these parameters, the view is the first page of all packages. */
export function parseUrl(search: string): ViewState {
  const params = new URLSearchParams(search);
  const query = trimmed(params.get('q') ?? '');
  if (query !== '') {
    const sort = params.get('sort') === 'name' ? 'name' : 'weight';
    return { query, sort, limit: params.get('limit') === String(MAX_LIMIT) ? MAX_LIMIT : INITIAL_LIMIT };
  }
  if (params.has('changes')) return { changes: true };
  const page = Number(params.get('page') ?? 1);
  return { page: Number.isSafeInteger(page) && page > 0 ? page : 1 };
}

/** The URL of a view, relative to the page. */
export function toUrl(shown: ViewState): string {
  if ('changes' in shown) return '?changes';
  const params = new URLSearchParams();
  if ('query' in shown) {
    params.set('q', shown.query);
    if (shown.sort === 'name') params.set('sort', 'name');
    if (shown.limit !== INITIAL_LIMIT) params.set('limit', String(shown.limit));
  } else if (shown.page !== 1) params.set('page', String(shown.page));
  const search = params.toString();
  return search === '' ? '.' : `?${search}`;
}
