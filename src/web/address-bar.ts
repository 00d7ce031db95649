import { parseUrl, titleOf, toUrl, type View } from './url-state.js';

/** Pause in typing that completes the history entry of a query, in milliseconds. */
const HISTORY_ENTRY_MS = 2000;

/** When the last letter was typed, in milliseconds since the epoch; 0 if the history entry is complete. */
let typedAt = 0;

/** Puts a view into the URL, as a new entry of the history. A second click on a link adds no entry. */
export function pushView(view: View): void {
  completeEntry();
  if (!isInUrl(view)) history.pushState(null, '', toUrl(view));
}

/** Puts a query into the URL. All letters typed without a long pause share one history entry. */
export function recordTyping(view: View): void {
  if (isInUrl(view)) return;
  if (Date.now() - typedAt < HISTORY_ENTRY_MS) history.replaceState(null, '', toUrl(view));
  else history.pushState(null, '', toUrl(view));
  document.title = titleOf(view);
  typedAt = Date.now();
}

/** Completes the history entry of the shown query: later typing begins a new entry. */
export function completeEntry(): void {
  typedAt = 0;
}

function isInUrl(view: View): boolean {
  return toUrl(view) === toUrl(parseUrl(location.search));
}
