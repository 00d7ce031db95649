import { commitHistoryEntry, pushAddress, recordTyping } from './address.js';
import { isLimitNear } from './api.js';
import { Composition } from './composition.js';
import { byId } from './dom.js';
import { listenToKeys } from './keyboard.js';
import { titleOf } from './render.js';
import { Results, ignoreAbort } from './results.js';
import { INITIAL_LIMIT, parseUrl, trimmed, type Sort, type ViewState } from './url-state.js';
import { Views } from './views.js';
import { codePoints } from '../util/unicode.js';

/**
 * Debounce of typing, in milliseconds. The long debounce applies if the rate limit is near, or if the query has one
 * character, which is rarely a whole name.
 */
const DEBOUNCE_MS = 40;
const LONG_DEBOUNCE_MS = 500;

const form = byId('form', HTMLFormElement);
const input = byId('query', HTMLInputElement);
/** The chosen order of matches. It is kept while the search box is empty. */
const sort = form.elements.namedItem('sort') as RadioNodeList;
const composition = new Composition(input);
const results = new Results(() => show(0));
const views = new Views(results, composition, () => {
  if ('query' in shown) show(0);
});

let shown: ViewState;
/** Aborted when another view is shown, so that late responses are dropped. */
let current = new AbortController();

/** Shows the view that the URL describes. */
function showFromUrl(): void {
  commitHistoryEntry();
  shown = parseUrl(location.search);
  input.value = queryOf(shown);
  if ('query' in shown) sort.value = shown.sort;
  document.title = titleOf(shown);
  show(0);
}

function queryOf(view: ViewState): string {
  return 'query' in view ? view.query : '';
}

/** Navigates to another view. */
function navigate(to: ViewState): void {
  commitHistoryEntry();
  pushAddress(to);
  showFromUrl();
}

/** Shows the results of the query while it is typed. */
function onInput(): void {
  const query = trimmed(input.value);
  if (query === queryOf(shown)) return;
  results.cancelFocus();
  shown = query === '' ? { page: 1 } : { query, sort: sort.value as Sort, limit: INITIAL_LIMIT };
  if (!composition.isActive) recordTyping(shown);
  show(isLimitNear() || codePoints(query).length === 1 ? LONG_DEBOUNCE_MS : DEBOUNCE_MS);
}

/** @param pauseMs debounce time. */
function show(pauseMs: number): void {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  results.markBusy();
  const debounceTimer = setTimeout(() => {
    ignoreAbort(views.load(shown, signal), signal);
  }, pauseMs);
  signal.addEventListener('abort', () => clearTimeout(debounceTimer));
}

input.addEventListener('input', onInput);
input.addEventListener('compositionstart', () => results.announce(false));
input.addEventListener('compositionend', () => {
  recordTyping(shown);
  results.announce(true);
});
form.addEventListener('submit', (event) => {
  event.preventDefault();
  commitHistoryEntry();
  results.focusFirst();
  if (results.isBusy) show(0);
});
byId('sort').addEventListener('change', () => {
  if ('query' in shown) navigate({ ...shown, sort: sort.value as Sort });
});
document.addEventListener('click', (event) => {
  const link = (event.target as Element).closest<HTMLAnchorElement>('a[data-within]');
  // With a modifier key, the browser opens the link in another tab or window.
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  navigate(parseUrl(link.search));
  scrollTo({ top: 0 });
  input.focus({ preventScroll: true });
});
addEventListener('popstate', showFromUrl);
listenToKeys(input, results.packages, () => {
  if (input.value !== '' || 'changes' in shown) navigate({ page: 1 });
});
showFromUrl();
// If the URL has a query string, the box gets no focus, so that keys such as Space scroll.
if (location.search === '') input.focus();
