import { toUrl, INITIAL_LIMIT, parseUrl, trimmed, type ViewState } from './url-state.js';
import {
  fetchJson,
  pointsLeft,
  isChange,
  isChanges,
  isMatch,
  isPackage,
  listOf,
  lookupOf,
  nextPage,
  type ApiResult,
  type Guard,
} from './api.js';
import { byId } from './dom.js';
import { listenToKeys } from './keyboard.js';
import {
  PAGE_SIZE,
  changesSummary,
  quoting,
  renderChanges,
  renderMatches,
  renderPage,
  renderSuggestions,
  summaryOf,
  titleOf,
  type Summary,
} from './render.js';
import { ErrorBanner } from './error-banner.js';
import { SnapshotBar } from './snapshot-bar.js';

/**
 * Debounce of typing, in milliseconds; longer if little of the client's rate limit is left, and after one letter,
 * which is rarely the whole name.
 */
const DEBOUNCE_MS = 40;
const LONG_DEBOUNCE_MS = 500;
const FEW_POINTS = 0.25;

/** Delay before look-alikes of a query without matches are requested: they cost more than a search. */
const SUGGEST_MS = 300;
const MAX_SUGGESTIONS = 5;

/** A query shown for this time gets its own entry in the browser's history, in milliseconds. */
const HISTORY_ENTRY_MS = 2000;

/** Number of changes per request. */
const CHANGES_LIMIT = 500;

/** Length of a query. */
const SHORTEST_QUERY = 2;
const LONGEST_QUERY = 100;
const TYPE_MORE = `To search within names, type at least ${SHORTEST_QUERY} characters.`;

const form = byId('form', HTMLFormElement);
const input = byId('query', HTMLInputElement);
const status = byId('status');
const packages = byId('packages');
const errorBanner = new ErrorBanner();
const snapshot = new SnapshotBar();
const firstLook = snapshot.watch();

let shown: ViewState;
/** Aborted when another view is shown, so that late responses are dropped. */
let current = new AbortController();
let settling: number | undefined;
let isTyping = false;
/**
 * Whether an input method is composing text: half words are searched for, as they may be whole ones, but not
 * announced, suggested for or kept in the history.
 */
let isComposing = false;
/**
 * Whether Enter was pressed before the response arrived: then the first package is focused once it is shown.
 */
let isEntering = false;
/** The remaining share of the client's rate limit, 0 to 1. */
let points = 1;

/** Shows the view in the URL. */
function showAddress(): void {
  commitHistoryEntry();
  shown = parseUrl(location.search);
  input.value = queryOf(shown);
  document.title = titleOf(shown);
  show(0);
}

function isInUrl(view: ViewState): boolean {
  return toUrl(view) === toUrl(parseUrl(location.search));
}

function queryOf(view: ViewState): string {
  return 'query' in view ? view.query : '';
}

/** Navigates to another view. */
function navigate(to: ViewState): void {
  commitHistoryEntry();
  // A link that is clicked twice is one entry of the history.
  if (!isInUrl(to)) history.pushState(null, '', toUrl(to));
  showAddress();
}

/** Shows the query while it is typed. */
function onInput(): void {
  const query = trimmed(input.value);
  if (query === queryOf(shown)) return;
  isEntering = false;
  shown = query === '' ? { page: 1 } : { query, limit: INITIAL_LIMIT };
  if (!isComposing) recordTyping();
  show(points < FEW_POINTS || lengthOf(query) === 1 ? LONG_DEBOUNCE_MS : DEBOUNCE_MS);
}

/** Shows the query in the URL. A whole word is one history entry, not each of its letters. */
function recordTyping(): void {
  if (isInUrl(shown)) return;
  if (isTyping) history.replaceState(null, '', toUrl(shown));
  else history.pushState(null, '', toUrl(shown));
  document.title = titleOf(shown);
  isTyping = true;
  clearTimeout(settling);
  settling = setTimeout(commitHistoryEntry, HISTORY_ENTRY_MS);
}

function onCompositionStart(): void {
  isComposing = true;
  status.ariaLive = 'off';
}

function onCompositionEnd(): void {
  isComposing = false;
  recordTyping();
  status.ariaLive = null;
  // Announces what was shown meanwhile.
  if (packages.ariaBusy !== 'true') status.replaceChildren(...status.childNodes);
}

/** @throws the signal's reason, if it is aborted. */
async function endOfComposition(signal: AbortSignal): Promise<void> {
  if (isComposing)
    await new Promise((resolve) => input.addEventListener('compositionend', resolve, { once: true }));
  signal.throwIfAborted();
}

function commitHistoryEntry(): void {
  clearTimeout(settling);
  isTyping = false;
}

/** @param pauseMs debounce time. */
function show(pauseMs: number): void {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  errorBanner.hide();
  packages.ariaBusy = 'true';
  const asking = setTimeout(() => {
    runUnlessAborted(load(shown, signal), signal);
  }, pauseMs);
  signal.addEventListener('abort', () => clearTimeout(asking));
}

function load(view: ViewState, signal: AbortSignal): Promise<void> {
  if ('query' in view) return search(view, signal);
  if ('changes' in view) return showChanges(signal);
  return browse(view, signal);
}

async function search(
  { query, limit }: { query: string; limit: number },
  signal: AbortSignal,
): Promise<void> {
  const length = lengthOf(query);
  if (length > LONGEST_QUERY) {
    display([`A query has at most ${LONGEST_QUERY} characters; this one has ${length}.`]);
    return;
  }
  if (length < SHORTEST_QUERY) {
    await lookUp(query, signal);
    return;
  }
  const params = new URLSearchParams({ q: query, limit: String(limit) });
  const isExpected = listOf(isMatch, { query: params.get('q') });
  const result = await fetchJson(`search?${params.toString()}`, isExpected, signal);
  handle(result, ({ results }, headers) => {
    displayList(
      {
        path: 'search',
        isExpected,
        display: (matches, more) =>
          display(summaryOf(matches, query, more), renderMatches(matches, query, more)),
      },
      results,
      nextPage(headers),
      signal,
    );
  });
  if ('body' in result && result.body.results.length === 0) await suggest(query, signal);
}

/** Shows the package with exactly this name, which is too short for a search. */
async function lookUp(name: string, signal: AbortSignal): Promise<void> {
  if (isComposing) display([TYPE_MORE]);
  await endOfComposition(signal);
  const params = new URLSearchParams({ name });
  const result = await fetchJson(`lookup?${params.toString()}`, lookupOf(params.get('name')), signal);
  handle(result, ({ results: [{ package: found }] }) => {
    if (found === null) display(quoting('No package is named', name, `. ${TYPE_MORE}`));
    else
      display(
        quoting('The package named', name, `. ${TYPE_MORE}`),
        renderMatches([{ ...found, rank: 0 }], name, false),
      );
  });
}

async function showChanges(signal: AbortSignal): Promise<void> {
  const result = await fetchJson(`changes?limit=${CHANGES_LIMIT}`, isChanges, signal);
  const counts = 'body' in result ? await snapshot.changesOf(result.body.to) : undefined;
  signal.throwIfAborted();
  handle(result, ({ from, to, results }, headers) => {
    displayList(
      {
        path: 'changes',
        isExpected: listOf(isChange, { from, to }),
        display: (changes, more) =>
          display([changesSummary(changes, more, counts, from === to)], renderChanges(changes, more)),
      },
      results,
      nextPage(headers),
      signal,
    );
  });
}

/** A list that an endpoint returns page by page. */
interface List<T> {
  /** The endpoint's path, relative to the page. */
  path: string;
  isExpected: Guard<{ results: T[] }>;
  display(results: readonly T[], more: boolean): void;
}

/** @param next the query string of the next page. */
function displayList<T>(
  list: List<T>,
  results: readonly T[],
  next: string | undefined,
  signal: AbortSignal,
): void {
  list.display(results, next !== undefined);
  const button = packages.querySelector<HTMLButtonElement>('#more');
  if (next === undefined || button === null) return;
  button.addEventListener('click', () => {
    if (button.ariaDisabled !== 'true')
      runUnlessAborted(showMore(list, results, next, signal, button), signal);
  });
}

/** Appends the next results, from the same snapshot, and focuses the first of them. */
async function showMore<T>(
  list: List<T>,
  results: readonly T[],
  next: string,
  signal: AbortSignal,
  button: HTMLElement,
): Promise<void> {
  errorBanner.hide();
  // One request at a time. A disabled button would lose the focus.
  button.ariaDisabled = 'true';
  const result = await fetchJson(list.path + next, list.isExpected, signal);
  points = pointsLeft(result.headers) ?? points;
  if ('error' in result) {
    button.ariaDisabled = null;
    errorBanner.show(result.error, () => button.click());
    return;
  }
  displayList(list, [...results, ...result.body.results], nextPage(result.headers), signal);
  // A page of changes may be empty although more follow.
  const added = packages.querySelectorAll<HTMLElement>('.packages a')[results.length];
  (added ?? packages.querySelector<HTMLElement>('#more'))?.focus();
}

/** Ignores the failure of a task that was aborted because another view is shown. */
function runUnlessAborted(task: Promise<void>, signal: AbortSignal): void {
  task.catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** Shows look-alikes of a query without matches. If the request fails, the page stays as it is. */
async function suggest(query: string, signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, SUGGEST_MS));
  await endOfComposition(signal);
  const params = new URLSearchParams({ name: query, limit: String(MAX_SUGGESTIONS) });
  const isExpected = listOf(isPackage, { name: params.get('name') });
  const result = await fetchJson(`similar?${params.toString()}`, isExpected, signal);
  points = pointsLeft(result.headers) ?? points;
  if ('error' in result || result.body.results.length === 0) return;
  const { results } = result.body;
  display(summaryOf([], query, false, results), renderSuggestions(results));
}

/** In code points, as the service measures it. */
function lengthOf(query: string): number {
  return Array.from(query).length;
}

async function browse({ page }: { page: number }, signal: AbortSignal): Promise<void> {
  const params = new URLSearchParams({ page: String(page), limit: String(PAGE_SIZE) });
  const [result] = await Promise.all([
    fetchJson(`browse?${params.toString()}`, listOf(isPackage, { page }), signal),
    firstLook,
  ]);
  signal.throwIfAborted();
  handle(result, ({ results }) => display([], renderPage(results, page, snapshot.total)));
}

function handle<T>(result: ApiResult<T>, render: (body: T, headers: Headers) => void): void {
  points = pointsLeft(result.headers) ?? points;
  if ('body' in result) {
    render(result.body, result.headers);
    return;
  }
  display([]);
  errorBanner.show(result.error, () => show(0));
}

function display(summary: Summary, lists: readonly HTMLElement[] = []): void {
  status.replaceChildren(...summary);
  packages.replaceChildren(...lists);
  packages.ariaBusy = 'false';
  if (isEntering) enterPackages();
}

function enterPackages(): void {
  isEntering = false;
  packages.querySelector<HTMLAnchorElement>('.packages a')?.focus();
}

input.addEventListener('input', onInput);
input.addEventListener('compositionstart', onCompositionStart);
input.addEventListener('compositionend', onCompositionEnd);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  commitHistoryEntry();
  if (packages.ariaBusy !== 'true') enterPackages();
  else {
    isEntering = true;
    show(0);
  }
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
addEventListener('popstate', showAddress);
listenToKeys(input, packages, () => {
  if (input.value !== '' || 'changes' in shown) navigate({ page: 1 });
});
showAddress();
