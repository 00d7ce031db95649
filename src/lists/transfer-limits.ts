import type { Readable } from 'node:stream';
import { OriginUnavailableError } from './dataset-error.js';

/**
 * Minimum progress of a transfer per window. Even a slow connection transfers 10 KiB in 30 s. An origin that trickles
 * bytes does not. The last window of a transfer may have fewer bytes.
 */
const MIN_BYTES_PER_WINDOW = 10 * 1024;

/** Limits of a transfer, and the observer of its bytes. */
export interface Transfer {
  /** Maximum waiting time for a response, and for each `MIN_BYTES_PER_WINDOW` of its body, in milliseconds. */
  windowMs: number;
  /** Ends every wait. */
  signal: AbortSignal;
  /** Called with the size of each chunk that has arrived, in bytes. */
  onBytes?: ((bytes: number) => void) | undefined;
}

/**
 * Waits for `promise`, without cancelling it.
 * @throws the error from `onTimeout` after `ms` milliseconds, or the reason of `signal` if it aborts.
 */
export async function withTimeout<T>(
  promise: Promise<T>,
  ms: number,
  signal: AbortSignal,
  onTimeout: () => Error,
): Promise<T> {
  let end: () => void = () => undefined;
  const ended = new Promise<never>((_resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    const timer = setTimeout(() => reject(onTimeout()), ms);
    signal.addEventListener('abort', abort);
    end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };
    if (signal.aborted) abort();
  });
  try {
    return await Promise.race([promise, ended]);
  } finally {
    end();
  }
}

/**
 * Passes chunks on as long as `MIN_BYTES_PER_WINDOW` arrive per window. Only the time spent waiting for the source
 * counts, not the time of the consumer.
 * @throws {OriginUnavailableError} if fewer bytes arrive, or the reason of `signal` if it aborts. The source is left
 * open.
 */
export async function* enforceMinimumRate(
  source: Readable,
  { windowMs, signal, onBytes }: Transfer,
): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  const tooSlow = () =>
    new OriginUnavailableError(
      `the dataset could not be downloaded: fewer than ${MIN_BYTES_PER_WINDOW} bytes arrived within ${windowMs / 1000} s`,
    );
  let missing = MIN_BYTES_PER_WINDOW;
  let leftMs = windowMs;
  for (;;) {
    const asked = performance.now();
    const next = await withTimeout(chunks.next(), leftMs, signal, tooSlow);
    if (next.done === true) return;
    leftMs -= performance.now() - asked;
    missing -= next.value.length;
    onBytes?.(next.value.length);
    if (missing <= 0) {
      missing = MIN_BYTES_PER_WINDOW;
      leftMs = windowMs;
    }
    yield next.value;
  }
}
