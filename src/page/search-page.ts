import { addressOf, FEW, readAddress, trimmed, type Shown } from './address.js';
import { ask, budgetLeft, type Asked, type Match, type Package } from './api.js';
import { byId } from './dom.js';
import { listenToKeys } from './keyboard.js';
import { PAGE_SIZE, showMatches, showPage, summaryOf, titleOf } from './lists.js';
import { Notice } from './notice.js';
import { SnapshotBar } from './snapshot-bar.js';

/** How long a pause in typing is waited for; longer where the client's budget of requests runs low. */
const DEBOUNCE_MS = 40;
const THRIFTY_DEBOUNCE_MS = 500;
const LOW_BUDGET = 0.25;

/** When a query has been looked at for so long, the next one is another step of the browser's history. */
const SETTLED_MS = 2000;

/** In code points, as the service measures. */
const SHORTEST_QUERY = 2;
const LONGEST_QUERY = 100;

const form = byId('form', HTMLFormElement);
const input = byId('query', HTMLInputElement);
const status = byId('status');
const packages = byId('packages');
const notice = new Notice();
const snapshot = new SnapshotBar();
const firstLook = snapshot.watch();

let shown: Shown;
/** Aborted when something else is to be shown: a late answer is dropped. */
let current = new AbortController();
let settling: number | undefined;
let isTyping = false;
/** Whether Enter was pressed before the answer came: then the first package is gone to as soon as it is there. */
let isEntering = false;
/** What is left of the client's budget of requests, 0 to 1. */
let budget = 1;

/** Shows what the address says. */
function showAddress(): void {
  settle();
  shown = readAddress(location.search);
  input.value = 'query' in shown ? shown.query : '';
  show(0);
}

/** Goes to another address of the page, and shows it. */
function go(to: Shown): void {
  settle();
  history.pushState(null, '', addressOf(to));
  showAddress();
}

/** Shows what is being typed. A whole word is one step of the history, not each of its letters. */
function type(): void {
  const query = trimmed(input.value);
  isEntering = false;
  shown = query === '' ? { page: 1 } : { query, limit: FEW };
  if (isTyping) history.replaceState(null, '', addressOf(shown));
  else history.pushState(null, '', addressOf(shown));
  isTyping = true;
  clearTimeout(settling);
  settling = setTimeout(settle, SETTLED_MS);
  show(budget < LOW_BUDGET ? THRIFTY_DEBOUNCE_MS : DEBOUNCE_MS);
}

function settle(): void {
  clearTimeout(settling);
  isTyping = false;
}

/** @param pauseMs how long nothing else must have been asked for. */
function show(pauseMs: number): void {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  notice.hide();
  document.title = titleOf(shown);
  packages.ariaBusy = 'true';
  const asking = setTimeout(() => {
    const done = 'query' in shown ? search(shown, signal) : browse(shown, signal);
    done.catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }, pauseMs);
  signal.addEventListener('abort', () => clearTimeout(asking));
}

async function search(
  { query, limit }: { query: string; limit: number },
  signal: AbortSignal,
): Promise<void> {
  const unfit = unfitness(query);
  if (unfit !== undefined) {
    display(unfit);
    return;
  }
  const params = new URLSearchParams({ q: query, limit: String(limit) });
  const asked = await ask<{ results: Match[] }>(`search?${params.toString()}`, signal);
  answer(asked, ({ results }, headers) => {
    const more = headers.has('X-Results-Truncated');
    display(summaryOf(results, query, more), showMatches(results, query, more));
  });
}

/** Why the service would refuse the query, in words; undefined where it would not. */
function unfitness(query: string): string | undefined {
  const length = Array.from(query).length;
  if (length < SHORTEST_QUERY) return `Type at least ${SHORTEST_QUERY} characters.`;
  if (length > LONGEST_QUERY)
    return `A query has at most ${LONGEST_QUERY} characters; this one has ${length}.`;
  return undefined;
}

async function browse({ page }: { page: number }, signal: AbortSignal): Promise<void> {
  const params = new URLSearchParams({ page: String(page), limit: String(PAGE_SIZE) });
  const [asked] = await Promise.all([
    ask<{ results: Package[] }>(`browse?${params.toString()}`, signal),
    firstLook,
  ]);
  signal.throwIfAborted();
  answer(asked, ({ results }) => display('', showPage(results, page, snapshot.total)));
}

function answer<T>(asked: Asked<T>, showIt: (answer: T, headers: Headers) => void): void {
  budget = budgetLeft(asked.headers) ?? budget;
  if ('answer' in asked) {
    showIt(asked.answer, asked.headers);
    return;
  }
  display('');
  notice.show(asked.trouble, () => show(0));
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

input.addEventListener('input', type);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  settle();
  if (packages.ariaBusy !== 'true') enterPackages();
  else {
    isEntering = true;
    show(0);
  }
});
packages.addEventListener('click', (event) => {
  const link = (event.target as Element).closest<HTMLAnchorElement>('a[data-within]');
  // With a key held down, the browser opens it elsewhere.
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(readAddress(link.search));
  scrollTo({ top: 0 });
  input.focus({ preventScroll: true });
});
addEventListener('popstate', showAddress);
listenToKeys(input, packages, () => {
  if (input.value !== '') go({ page: 1 });
});
showAddress();
