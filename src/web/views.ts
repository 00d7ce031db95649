import {
  fetchJson,
  isChange,
  isChanges,
  isPackage,
  listOf,
  lookupOf,
  searchFor,
  type Change,
  type Match,
  type Package,
} from './api.js';
import type { Composition } from './composition.js';
import { byId, speak } from './dom.js';
import { pluralize } from './format.js';
import { fetchLookAlikes, fetchSuggestions } from './look-alikes.js';
import {
  changesSummary,
  PAGE_SIZE,
  quoting,
  renderChanges,
  renderLookAlikes,
  renderMatches,
  renderPage,
  renderSuggestions,
  summaryOf,
  totalOf,
} from './render.js';
import type { Results } from './results.js';
import { SnapshotBar } from './snapshot-bar.js';
import type { SearchView, ViewState } from './url-state.js';
import { unifySeparators } from '../util/name-rule.js';
import { codePoints } from '../util/unicode.js';

/**
 * Delay before suggestions for a query without matches are requested, in milliseconds. They cost more than a search.
 */
const SUGGEST_MS = 300;

/**
 * Delay before look-alikes of an exact match are requested, in milliseconds. Users who continue typing want a different
 * name.
 */
const LOOK_ALIKES_MS = 500;

/** Number of changes per request. */
const CHANGES_LIMIT = 500;

/** Limits of the length of a query, in code points. */
const SHORTEST_QUERY = 2;
const LONGEST_QUERY = 100;
const TYPE_MORE = `To search within names, type at least ${SHORTEST_QUERY} characters.`;

/** Requests and displays the content of a view. Methods throw the signal's reason if the signal aborts. */
export class Views {
  readonly #snapshot: SnapshotBar;
  readonly #firstPoll: Promise<void>;
  /** The control for the order of matches. The orders differ only if packages have weights. */
  readonly #sort = byId('sort');

  /** @param onNameRule called when the name rule changes. */
  constructor(
    private readonly results: Results,
    private readonly composition: Composition,
    onNameRule: () => void,
  ) {
    this.#snapshot = new SnapshotBar(onNameRule);
    this.#firstPoll = this.#snapshot.watch();
  }

  load(view: ViewState, signal: AbortSignal): Promise<void> {
    if ('query' in view) return this.#search(view, signal);
    this.#sort.hidden = true;
    if ('changes' in view) return this.#showChanges(signal);
    return this.#browse(view, signal);
  }

  async #search(view: SearchView, signal: AbortSignal): Promise<void> {
    const { query, sort, limit } = view;
    const { length } = codePoints(query);
    if (length > LONGEST_QUERY) {
      this.#sort.hidden = true;
      this.results.display([`A query has at most ${LONGEST_QUERY} characters; this one has ${length}.`]);
      return;
    }
    if (codePoints(unifySeparators(this.#snapshot.nameRule, query)).length < SHORTEST_QUERY) {
      await this.#lookUp(view, signal);
      return;
    }
    const params = new URLSearchParams({ q: query, sort });
    const asked = `search?${params.toString()}`;
    const path = `${asked}&limit=${limit}`;
    const isExpected = searchFor(params.get('q'));
    const lookAlikes: HTMLElement[] = [];
    const result = await fetchJson(`${asked}&total=true&limit=${limit}`, isExpected, signal);
    const total = 'body' in result ? totalOf(result.body) : undefined;
    const list = {
      path: 'search',
      isExpected,
      display: (matches: readonly Match[], more: boolean) => {
        this.#sort.hidden = matches[0]?.weight === undefined;
        const { nameRule } = this.#snapshot;
        this.results.display(
          summaryOf(matches, query, more, { total }),
          renderMatches(matches, view, more, path, nameRule),
        );
        this.results.insert(...lookAlikes);
      },
    };
    this.results.handle(result, ({ results }, headers) =>
      this.results.displayList(list, results, headers, signal),
    );
    if ('error' in result) return;
    const [first] = result.body.results;
    if (first === undefined) await this.#suggest(view, signal);
    else if (first.rank === 0) lookAlikes.push(...(await this.#showLookAlikes(first, view, signal)));
  }

  /** Shows the package whose name equals the query, because the query is too short for a search. */
  async #lookUp(view: SearchView, signal: AbortSignal): Promise<void> {
    const name = view.query;
    this.#sort.hidden = true;
    if (this.composition.isActive) this.results.display([TYPE_MORE]);
    await this.composition.ended(signal);
    const params = new URLSearchParams({ name });
    const path = `lookup?${params.toString()}`;
    const result = await fetchJson(path, lookupOf(params.get('name')), signal);
    this.results.handle(result, ({ results: [{ package: found }] }) => {
      const before = found === null ? 'No package is named' : 'The package named';
      const matches = found === null ? [] : [{ ...found, rank: 0 } as const];
      this.results.display(
        quoting(before, name, `. ${TYPE_MORE}`),
        renderMatches(matches, view, false, path, this.#snapshot.nameRule),
      );
    });
    const found = 'body' in result && result.body.results[0].package;
    if (found) await this.#showLookAlikes(found, view, signal);
  }

  /** Shows suggestions for a query without matches. If the request fails, the page stays as it is. */
  async #suggest(view: SearchView, signal: AbortSignal): Promise<void> {
    const { query, sort } = view;
    await this.#pause(SUGGEST_MS, signal);
    const suggestions = await fetchSuggestions(query, signal);
    if (suggestions.length === 0) return;
    const feed = renderMatches([], view, false, 'search', this.#snapshot.nameRule);
    const summary = summaryOf([], query, false, { suggestions });
    this.results.display(summary, [renderSuggestions(suggestions, sort), ...feed]);
  }

  /** Shows the look-alikes of an exact match after the first list. If the request fails, the page stays as it is. */
  async #showLookAlikes(exact: Package, { sort }: SearchView, signal: AbortSignal): Promise<HTMLElement[]> {
    await this.#pause(LOOK_ALIKES_MS, signal);
    const lookAlikes = await fetchLookAlikes(exact, signal);
    if (lookAlikes.length === 0) return [];
    const section = renderLookAlikes(lookAlikes, sort);
    this.results.insert(section);
    const muchMore = lookAlikes.filter((one) => one.isMuchMoreUsed).length;
    const mark = muchMore > 0 ? `, ${muchMore} of them much more used` : '';
    speak(`Easily mistaken for ${pluralize(lookAlikes.length, 'name')}${mark}.`);
    return [section];
  }

  /** Waits `ms` milliseconds, and then for the end of a composition. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms));
    await this.composition.ended(signal);
  }

  async #showChanges(signal: AbortSignal): Promise<void> {
    const result = await fetchJson(`changes?limit=${CHANGES_LIMIT}`, isChanges, signal);
    const counts = 'body' in result ? await this.#snapshot.changesOf(result.body.to) : undefined;
    signal.throwIfAborted();
    this.results.handle(result, ({ from, to, results }, headers) => {
      const list = {
        path: 'changes',
        isExpected: listOf(isChange, { from, to }),
        display: (changes: readonly Change[], more: boolean) =>
          this.results.display(
            [changesSummary(changes, more, counts, from === to)],
            renderChanges(changes, more),
          ),
      };
      this.results.displayList(list, results, headers, signal);
    });
  }

  async #browse({ page }: { page: number }, signal: AbortSignal): Promise<void> {
    const params = new URLSearchParams({ page: String(page), limit: String(PAGE_SIZE) });
    const [result] = await Promise.all([
      fetchJson(`browse?${params.toString()}`, listOf(isPackage, { page }), signal),
      this.#firstPoll,
    ]);
    signal.throwIfAborted();
    this.results.handle(result, ({ results }) =>
      this.results.display([], renderPage(results, page, this.#snapshot.total)),
    );
  }
}
