import { statfs } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { DatasetError, UnavailableError } from './dataset-error.js';

/**
 * Minimum progress of a transfer per window: 10 KiB in 30 s is far slower than any link, but detects an
 * origin that trickles bytes. The last piece of a transfer may be smaller.
 */
const MIN_BYTES_PER_WINDOW = 10 * 1024;

/**
 * Bytes written between two checks of the free space. Each check requires this much, so that a transfer by
 * itself never uses the reserve; 1 MiB makes the cost of the checks (0.1 ms each) negligible.
 */
const SPACE_CHECK_BYTES = 2 ** 20;
/** Maximum age of such a check, in milliseconds, for a slow transfer to a disk that other processes fill. */
const SPACE_CHECK_MS = 1000;

/** How long to wait for an origin, and who counts what it sends. */
export interface Transfer {
  /** Timeout of one wait, or of `MIN_BYTES_PER_WINDOW`, in milliseconds. */
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
 * counts, not that of the consumer.
 * @throws {UnavailableError} if fewer arrive, or the reason of `signal` if it aborts. The source is left open.
 */
export async function* enforceMinimumRate(
  source: Readable,
  { windowMs, signal, onBytes }: Transfer,
): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  const tooSlow = () =>
    new UnavailableError(
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

/** Passes items on, also those that nothing has to be waited for. @throws the reason of `signal` if it aborts. */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  for await (const item of source) {
    signal.throwIfAborted();
    yield item;
  }
}

/** Passes chunks on. @throws {DatasetError} beyond `maxBytes`. */
export async function* limitBytes(maxBytes: number, source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new DatasetError(`the dataset is larger than ${maxBytes} bytes`);
    yield chunk;
  }
}

/**
 * Passes on chunks that are written to `folder`, from an origin that announced no size.
 * @throws {DatasetError} if the free space runs out.
 */
export async function* limitByFreeSpace(
  source: AsyncIterable<Buffer>,
  folder: string,
  reservedBytes: number,
): AsyncGenerator<Buffer> {
  let written = 0;
  let unchecked = 0;
  let checkedAt = -Infinity;
  for await (const chunk of source) {
    unchecked += chunk.length;
    if (unchecked > SPACE_CHECK_BYTES || performance.now() - checkedAt > SPACE_CHECK_MS) {
      if ((await freeSpaceIn(folder, reservedBytes)) < chunk.length + SPACE_CHECK_BYTES) {
        throw new DatasetError(
          `the dataset has more than ${written} bytes, and the temporary folder has no room for more`,
        );
      }
      unchecked = chunk.length;
      checkedAt = performance.now();
    }
    yield chunk;
    written += chunk.length;
  }
}

/** Fails before the first byte if the origin announces more than there is room for. @throws {DatasetError} */
export async function assertFreeSpace(folder: string, reservedBytes: number, bytes: number): Promise<void> {
  const room = await freeSpaceIn(folder, reservedBytes);
  if (bytes <= room) return;
  throw new DatasetError(
    `the dataset has ${bytes} bytes, and the temporary folder has room for ${Math.max(0, room)}`,
  );
}

/** Free bytes in the file system of `folder` beyond the reserve; may be negative. */
async function freeSpaceIn(folder: string, reservedBytes: number): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize - reservedBytes;
}
