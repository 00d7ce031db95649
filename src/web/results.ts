import { fetchJson, nextPage, type ApiResult, type Guard } from './api.js';
import { byId, speak } from './dom.js';
import { ErrorBanner } from './error-banner.js';
import type { Summary } from './render.js';

/** A list that an endpoint returns page by page. */
interface List<T> {
  /** The endpoint's path, relative to the page. */
  path: string;
  isExpected: Guard<{ results: T[] }>;
  display(results: readonly T[], more: boolean): void;
}

/** The part of the page below the search box: the status line, the lists of packages, and errors. */
export class Results {
  readonly packages = byId('packages');
  readonly #status = byId('status');
  readonly #banner = new ErrorBanner();
  /**
   * Whether the user pressed Enter before the response arrived. If so, the first package gets the focus as soon as it
   * is shown.
   */
  #isEntering = false;

  /** @param retry repeats the failed request. */
  constructor(private readonly retry: () => void) {}

  /** Whether a response is awaited. */
  get isBusy(): boolean {
    return this.packages.ariaBusy === 'true';
  }

  /** Called when a view is about to be requested, before the debounce. */
  markBusy(): void {
    speak('');
    this.#banner.hide();
    this.packages.ariaBusy = 'true';
  }

  display(summary: Summary, lists: readonly HTMLElement[] = []): void {
    this.#status.replaceChildren(...summary);
    this.packages.replaceChildren(...lists);
    this.packages.ariaBusy = 'false';
    if (this.#isEntering) this.#enter();
  }

  /** Adds elements after the first list. */
  insert(...added: HTMLElement[]): void {
    this.packages.firstElementChild?.after(...added);
  }

  /** Displays the body of a response, or the error. */
  handle<T>(result: ApiResult<T>, render: (body: T, headers: Headers) => void): void {
    if ('body' in result) {
      render(result.body, result.headers);
      return;
    }
    this.display([]);
    this.#banner.show(result.error, this.retry);
  }

  /** @param headers of the response, with a link to the next page if there is one. */
  displayList<T>(list: List<T>, results: readonly T[], headers: Headers, signal: AbortSignal): void {
    const next = nextPage(headers);
    list.display(results, next !== undefined);
    const button = this.packages.querySelector<HTMLButtonElement>('#more');
    if (next === undefined || button === null) return;
    button.addEventListener('click', () => {
      if (button.ariaDisabled !== 'true')
        ignoreAbort(this.#showMore(list, results, next, signal, button), signal);
    });
  }

  /** Focuses the first package, as soon as it is shown. */
  focusFirst(): void {
    this.#isEntering = this.isBusy;
    if (!this.isBusy) this.#enter();
  }

  /** Called when the user types another query: its first result gets no focus. */
  cancelFocus(): void {
    this.#isEntering = false;
  }

  /**
   * Turns announcements of the status line on or off. Turning them on announces the current line, unless a response is
   * awaited.
   */
  announce(isOn: boolean): void {
    this.#status.ariaLive = isOn ? null : 'off';
    if (isOn && !this.isBusy) this.#status.replaceChildren(...this.#status.childNodes);
  }

  #enter(): void {
    this.#isEntering = false;
    this.packages.querySelector<HTMLAnchorElement>('.packages a')?.focus();
  }

  /** Appends the next page of results, from the same snapshot, and focuses its first result. */
  async #showMore<T>(
    list: List<T>,
    results: readonly T[],
    next: string,
    signal: AbortSignal,
    button: HTMLElement,
  ): Promise<void> {
    this.#banner.hide();
    // One request at a time. A disabled button would lose the focus.
    button.ariaDisabled = 'true';
    const result = await fetchJson(list.path + next, list.isExpected, signal);
    if ('error' in result) {
      button.ariaDisabled = null;
      this.#banner.show(result.error, () => button.click());
      return;
    }
    this.displayList(list, [...results, ...result.body.results], result.headers, signal);
    // A page of changes may be empty although further changes follow: then the button gets the focus.
    const added = this.packages.querySelectorAll<HTMLElement>('.packages a')[results.length];
    (added ?? this.packages.querySelector<HTMLElement>('#more'))?.focus();
  }
}

/** Ignores the failure of a task that was aborted because another view is shown. */
export function ignoreAbort(task: Promise<void>, signal: AbortSignal): void {
  task.catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
