import { titleOf } from './render.js';
import { parseUrl, toUrl, type ViewState } from './url-state.js';

/** Pause in typing that completes the history entry of a query, in milliseconds. */
const HISTORY_ENTRY_MS = 2000;

let commitTimer: number | undefined;
let isTyping = false;

function isInUrl(view: ViewState): boolean {
  return toUrl(view) === toUrl(parseUrl(location.search));
}

/** Puts a view into the URL, as a new entry of the history. */
export function pushAddress(view: ViewState): void {
  // A second click on a link adds no entry.
  if (!isInUrl(view)) history.pushState(null, '', toUrl(view));
}

/**
 * Puts a query into the URL while the user types it. All letters typed without a long pause share one history entry.
 */
export function recordTyping(view: ViewState): void {
  if (isInUrl(view)) return;
  if (isTyping) history.replaceState(null, '', toUrl(view));
  else history.pushState(null, '', toUrl(view));
  document.title = titleOf(view);
  isTyping = true;
  clearTimeout(commitTimer);
  commitTimer = setTimeout(commitHistoryEntry, HISTORY_ENTRY_MS);
}

/** Completes the history entry of the shown query: later typing begins a new entry. */
export function commitHistoryEntry(): void {
  clearTimeout(commitTimer);
  isTyping = false;
}
