import type { ApiError } from './api.js';
import { byId } from './dom.js';
import { pluralize } from './format.js';

const SECOND_MS = 1000;

/**
 * The first and the longest wait if the service gives no time for a retry, in seconds. Each wait is twice the previous
 * wait.
 */
const FIRST_WAIT = 5;
const LONGEST_WAIT = 60;

/** Shows an error. If a retry may succeed, shows a countdown and then retries. */
export class ErrorBanner {
  readonly #box = byId('error-banner');
  readonly #message = byId('error-message');
  readonly #countdown = byId('countdown');
  #timer: number | undefined;
  /** Retries since the last action of the user. */
  #retries = 0;

  show({ words, retryAfter }: ApiError, retry: () => void): void {
    clearTimeout(this.#timer);
    this.#box.hidden = false;
    this.#message.textContent = words;
    this.#countdown.textContent = '';
    if (retryAfter === undefined) return;
    const wait = retryAfter || Math.min(FIRST_WAIT * 2 ** this.#retries, LONGEST_WAIT);
    const endsAt = Date.now() + wait * SECOND_MS;
    const tick = () => {
      // The remaining time is computed from the clock, because timers of background tabs run late.
      const left = Math.ceil((endsAt - Date.now()) / SECOND_MS);
      if (left <= 0) {
        const retries = this.#retries + 1;
        retry();
        // `retry` has called `hide`, which sets the count to 0.
        this.#retries = retries;
      } else {
        this.#countdown.textContent = `Retrying in ${durationOf(left)}.`;
        this.#timer = setTimeout(tick, endsAt - Date.now() - (left - 1) * SECOND_MS);
      }
    };
    tick();
  }

  hide(): void {
    clearTimeout(this.#timer);
    this.#retries = 0;
    this.#box.hidden = true;
    this.#message.textContent = '';
    this.#countdown.textContent = '';
  }
}

function durationOf(seconds: number): string {
  return seconds > 120 ? pluralize(Math.ceil(seconds / 60), 'minute') : pluralize(seconds, 'second');
}
