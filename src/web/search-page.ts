import { completeEntry, pushView, recordTyping } from './address-bar.js';
import { showPage } from './all-packages.js';
import { ApiError, isLimitNear } from './api.js';
import { byId, pause } from './dom.js';
import { hideError, showError } from './error-banner.js';
import { listenToKeys } from './keyboard.js';
import { showMatches } from './matches.js';
import { display, focusPackage, isBusy, markBusy } from './results.js';
import { showSnapshot } from './snapshot-bar.js';
import { INITIAL_LIMIT, parseUrl, titleOf, type Sort, type View } from './url-state.js';
import { codePoints, trimWhiteSpace } from '../util/unicode.js';

/**
 * In milliseconds. The long debounce applies near the rate limit, and to one character, which is rarely a whole name.
 */
const DEBOUNCE_MS = 40;
const LONG_DEBOUNCE_MS = 500;

const form = byId('form') as HTMLFormElement;
const input = byId('query') as HTMLInputElement;
/** The chosen order of matches. It is kept while the search box is empty. */
const sort = form.elements.namedItem('sort') as RadioNodeList;

let shown: View;
/** Aborted when another view is shown, so that late responses are dropped. */
let current = new AbortController();

/** Requests and shows the current view. @param pauseMs debounce time. */
async function show(pauseMs = 0): Promise<void> {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  markBusy();
  hideError();
  try {
    await pause(pauseMs, signal);
    void showSnapshot();
    await ('query' in shown ? showMatches(shown, signal) : showPage(shown.page, signal));
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof ApiError)) throw error;
    display([], []);
    showError(error, () => void show());
  }
}

/** @param typed is kept in the search box; empty if the box shows the query of the URL. */
function showFromUrl(typed = ''): void {
  completeEntry();
  shown = parseUrl(location.search);
  if (typed === '') input.value = queryOf(shown);
  if ('query' in shown) sort.value = shown.sort;
  document.title = titleOf(shown);
  void show();
}

function queryOf(view: View): string {
  return 'query' in view ? view.query : '';
}

function navigate(to: View): void {
  pushView(to);
  showFromUrl();
}

input.addEventListener('input', (event) => {
  const query = trimWhiteSpace(input.value);
  if (query === queryOf(shown)) return;
  shown = query === '' ? { page: 1 } : { query, sort: sort.value as Sort, limit: INITIAL_LIMIT };
  // Text that an input method is composing is searched, because keyboards of phones compose each word, but it is not
  // stored in the history.
  if (!event.isComposing) recordTyping(shown);
  void show(isLimitNear || codePoints(query).length === 1 ? LONG_DEBOUNCE_MS : DEBOUNCE_MS);
});
input.addEventListener('compositionend', () => recordTyping(shown));
form.addEventListener('submit', (event) => {
  event.preventDefault();
  completeEntry();
  if (isBusy()) void show();
  focusPackage(0);
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
  if (link.dataset['within'] !== '') {
    focusPackage(Number(link.dataset['within']));
    return;
  }
  scrollTo({ top: 0 });
  input.focus({ preventScroll: true });
});
addEventListener('popstate', () => showFromUrl());
listenToKeys(input, () => {
  if (input.value !== '') navigate({ page: 1 });
});
// Text that was typed before this script had loaded stays and is searched.
const typed = trimWhiteSpace(input.value);
showFromUrl(typed);
if (typed !== '') input.dispatchEvent(new InputEvent('input'));
// If the URL has a query string, the box gets no focus, so that keys such as Space scroll.
if (location.search === '') input.focus();
