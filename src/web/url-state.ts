import { trimWhiteSpace } from '../util/unicode.js';
import { formatNumber } from './format.js';

/** Number of matches that are shown at first; then a multiple of `LIMIT_STEP`, up to `MAX_LIMIT`. */
export const INITIAL_LIMIT = 50;
export const LIMIT_STEP = 500;
export const MAX_LIMIT = 10_000;

/** The order of matches of equal rank: most used first, or by name. Without weights, both orders are equal. */
export type Sort = 'weight' | 'name';

export interface SearchView {
  query: string;
  sort: Sort;
  limit: number;
}

/** The view in the URL: matches of a query, or a page of all packages. */
export type View = SearchView | { page: number };

/** Parses `?q=redis` or `?page=3`; without these parameters, the view is the first page of all packages. */
export function parseUrl(search: string): View {
  const params = new URLSearchParams(search);
  const query = trimWhiteSpace(params.get('q') ?? '');
  if (query !== '') {
    const sort = params.get('sort') === 'name' ? 'name' : 'weight';
    const limit = Number(params.get('limit'));
    const isStep = limit % LIMIT_STEP === 0 && limit > 0 && limit <= MAX_LIMIT;
    return { query, sort, limit: isStep ? limit : INITIAL_LIMIT };
  }
  const page = Number(params.get('page') ?? 1);
  return { page: Number.isSafeInteger(page) && page > 0 ? page : 1 };
}

/** The URL of a view, relative to the page. */
export function toUrl(view: View): string {
  const params = new URLSearchParams();
  if ('query' in view) {
    params.set('q', view.query);
    if (view.sort === 'name') params.set('sort', 'name');
    if (view.limit !== INITIAL_LIMIT) params.set('limit', String(view.limit));
  } else if (view.page !== 1) params.set('page', String(view.page));
  const search = params.toString();
  return search === '' ? '.' : `?${search}`;
}

export function titleOf(view: View): string {
  // Direction marks in the query could reverse the rest of the title. A title cannot contain elements that isolate the
  // query.
  if ('query' in view) return `${view.query.replace(/\p{Bidi_Control}/gu, '')} – Package search`;
  return view.page === 1 ? 'Package search' : `Page ${formatNumber(view.page)} – Package search`;
}
