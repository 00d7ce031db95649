import { toUrl, INITIAL_LIMIT, parseUrl, trimmed, type ViewState } from './url-state.js';
import {
  fetchJson,
  budgetLeft,
  nextPage,
  type ApiResult,
  type Change,
  type Match,
  type Package,
  type Similar,
} from './api.js';
import { byId } from './dom.js';
import { listenToKeys } from './keyboard.js';
import {
  PAGE_SIZE,
  changesSummary,
  renderChanges,
  renderMatches,
  renderPage,
  renderSuggestions,
  summaryOf,
  titleOf,
} from './render.js';
import { ErrorBanner } from './error-banner.js';
import { SnapshotBar } from './snapshot-bar.js';

/** Debounce of typing, in milliseconds; longer if little of the client's rate limit is left. */
const DEBOUNCE_MS = 40;
const LOW_BUDGET_DEBOUNCE_MS = 500;
const LOW_BUDGET = 0.25;

/** Delay before look-alikes of a query without matches are requested: they cost more than a search. */
const SUGGEST_MS = 300;
const MAX_SUGGESTIONS = 5;

/** A query shown for this time gets its own entry in the browser's history, in milliseconds. */
const HISTORY_ENTRY_MS = 2000;

/** Number of changes per request. */
const CHANGES_LIMIT = 500;

/** Length of a query in code points, as the service measures it. */
const SHORTEST_QUERY = 2;
const LONGEST_QUERY = 100;

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
 * Whether Enter was pressed before the response arrived: then the first package is focused once it is shown.
 */
let isEntering = false;
/** The remaining share of the client's rate limit, 0 to 1. */
let budget = 1;

/** Shows the view in the URL. */
function showAddress(): void {
  commitHistoryEntry();
  shown = parseUrl(location.search);
  input.value = 'query' in shown ? shown.query : '';
  show(0);
}

/** Navigates to another view. */
function navigate(to: ViewState): void {
  commitHistoryEntry();
  history.pushState(null, '', toUrl(to));
  showAddress();
}

/** Shows the query while it is typed. A whole word is one history entry, not each of its letters. */
function onInput(): void {
  const query = trimmed(input.value);
  isEntering = false;
  shown = query === '' ? { page: 1 } : { query, limit: INITIAL_LIMIT };
  if (isTyping) history.replaceState(null, '', toUrl(shown));
  else history.pushState(null, '', toUrl(shown));
  isTyping = true;
  clearTimeout(settling);
  settling = setTimeout(commitHistoryEntry, HISTORY_ENTRY_MS);
  show(budget < LOW_BUDGET ? LOW_BUDGET_DEBOUNCE_MS : DEBOUNCE_MS);
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
  document.title = titleOf(shown);
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
  const unfit = validateQuery(query);
  if (unfit !== undefined) {
    display(unfit);
    return;
  }
  const params = new URLSearchParams({ q: query, limit: String(limit) });
  const result = await fetchJson<{ results: Match[] }>(`search?${params.toString()}`, signal);
  handle(result, ({ results }, headers) => {
    displayList(
      {
        path: 'search',
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

async function showChanges(signal: AbortSignal): Promise<void> {
  const result = await fetchJson<{ from: string; to: string; results: Change[] }>(
    `changes?limit=${CHANGES_LIMIT}`,
    signal,
  );
  const counts = 'body' in result ? await snapshot.changesOf(result.body.to) : undefined;
  signal.throwIfAborted();
  handle(result, ({ from, to, results }, headers) => {
    displayList(
      {
        path: 'changes',
        display: (changes, more) =>
          display(changesSummary(changes, more, counts, from === to), renderChanges(changes, more)),
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
  if (next === undefined) return;
  packages
    .querySelector('#more')
    ?.addEventListener('click', () => runUnlessAborted(showMore(list, results, next, signal), signal));
}

/** Appends the next results, from the same snapshot, and focuses the first of them. */
async function showMore<T>(
  list: List<T>,
  results: readonly T[],
  next: string,
  signal: AbortSignal,
): Promise<void> {
  errorBanner.hide();
  packages.ariaBusy = 'true';
  const result = await fetchJson<{ results: T[] }>(list.path + next, signal);
  packages.ariaBusy = 'false';
  budget = budgetLeft(result.headers) ?? budget;
  if ('error' in result) {
    errorBanner.show(result.error, () => runUnlessAborted(showMore(list, results, next, signal), signal));
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
  signal.throwIfAborted();
  const params = new URLSearchParams({ name: query, limit: String(MAX_SUGGESTIONS) });
  const result = await fetchJson<{ results: Similar[] }>(`similar?${params.toString()}`, signal);
  budget = budgetLeft(result.headers) ?? budget;
  if ('error' in result || result.body.results.length === 0) return;
  const { results } = result.body;
  display(summaryOf([], query, false, results), renderSuggestions(results));
}

/** Why the service would reject the query, as text for the user; undefined if the query is valid. */
function validateQuery(query: string): string | undefined {
  const length = Array.from(query).length;
  if (length < SHORTEST_QUERY) return `Type at least ${SHORTEST_QUERY} characters.`;
  if (length > LONGEST_QUERY)
    return `A query has at most ${LONGEST_QUERY} characters; this one has ${length}.`;
  return undefined;
}

async function browse({ page }: { page: number }, signal: AbortSignal): Promise<void> {
  const params = new URLSearchParams({ page: String(page), limit: String(PAGE_SIZE) });
  const [result] = await Promise.all([
    fetchJson<{ results: Package[] }>(`browse?${params.toString()}`, signal),
    firstLook,
  ]);
  signal.throwIfAborted();
  handle(result, ({ results }) => display('', renderPage(results, page, snapshot.total)));
}

function handle<T>(result: ApiResult<T>, render: (body: T, headers: Headers) => void): void {
  budget = budgetLeft(result.headers) ?? budget;
  if ('body' in result) {
    render(result.body, result.headers);
    return;
  }
  display('');
  errorBanner.show(result.error, () => show(0));
}

function display(summary: string, lists: readonly HTMLElement[] = []): void {
  status.textContent = summary;
  packages.replaceChildren(...lists);
  packages.ariaBusy = 'false';
  if (isEntering) enterPackages();
}

function enterPackages(): void {
  isEntering = false;
  packages.querySelector<HTMLAnchorElement>('.packages a')?.focus();
}

input.addEventListener('input', onInput);
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
