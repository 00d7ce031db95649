import type { Readable } from 'node:stream';
import { withDeadline } from '../../util/deadline.js';
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
 * Passes chunks on as long as `MIN_BYTES_PER_WINDOW` arrive per window. Only the time spent waiting for the source
 * counts, not the time of the consumer.
 * @throws {OriginUnavailableError} if fewer bytes arrive, or the reason of `signal` if it aborts. The source is then
 * destroyed.
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
    const read = (ended: AbortSignal) => {
      ended.addEventListener('abort', () => source.destroy(ended.reason as Error));
      return chunks.next();
    };
    const next = await withDeadline(leftMs, signal, read, tooSlow);
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
