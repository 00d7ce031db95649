import type { ApiError } from './api.js';
import { byId, pluralize } from './dom.js';

const SECOND_MS = 1000;

/** Shows an error and a countdown to the retry, and then retries. */
export class ErrorBanner {
  readonly #box = byId('error-banner');
  readonly #message = byId('error-message');
  readonly #countdown = byId('countdown');
  #timer: number | undefined;

  show({ words, retryAfter }: ApiError, retry: () => void): void {
    this.hide();
    this.#box.hidden = false;
    this.#message.textContent = words;
    if (retryAfter === undefined) return;
    const due = Date.now() + retryAfter * SECOND_MS;
    const tick = () => {
      // By the clock: timers of background tabs run late.
      const left = Math.ceil((due - Date.now()) / SECOND_MS);
      if (left <= 0) retry();
      else {
        this.#countdown.textContent = `Retrying in ${pluralize(left, 'second')}.`;
        this.#timer = setTimeout(tick, due - Date.now() - (left - 1) * SECOND_MS);
      }
    };
    tick();
  }

  hide(): void {
    clearTimeout(this.#timer);
    this.#box.hidden = true;
    this.#message.textContent = '';
    this.#countdown.textContent = '';
  }
}
