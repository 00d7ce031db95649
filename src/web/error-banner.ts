import type { ApiError } from './api.js';
import { byId } from './dom.js';
import { pluralize } from './format.js';

let timer: ReturnType<typeof setTimeout> | undefined;

/** Shows an error. If a retry may succeed, shows a countdown and then retries. */
export function showError({ message, retryAfter }: ApiError, retry: () => void): void {
  byId('error-banner').hidden = false;
  byId('error-message').textContent = message;
  if (retryAfter === undefined) return;
  const endsAt = Date.now() + retryAfter * 1000;
  const tick = () => {
    // The remaining time is computed from the clock, because timers of background tabs run late.
    const left = Math.ceil((endsAt - Date.now()) / 1000);
    byId('countdown').textContent = `Retrying in ${pluralize(left, 'second')}.`;
    if (left > 0) timer = setTimeout(tick, 1000);
    else retry();
  };
  tick();
}

export function hideError(): void {
  clearTimeout(timer);
  byId('error-banner').hidden = true;
  byId('error-message').textContent = '';
  byId('countdown').textContent = '';
}
