import type { SearchPool } from '../elasticsearch/search-pool.js';
import { decodeEntry } from '../snapshot/package-document.js';
import { isReadable, type FoundIndex } from '../snapshot/snapshot.js';
import type { Weights } from '../lists/weights.js';
import type { RetryOptions } from '../publish/retry.js';
import { PageReader } from '../publish/page-reader.js';

/** Reading the old snapshot fails after this time without progress, in milliseconds. */
const STALL_MS = 60_000;

const WEIGHED = { filter: [{ range: { weight: { gt: 0 } } }] };

/**
 * Counts the names that had a weight in the served snapshot, and those of them that have one now.
 * @param pool must have a long timeout.
 * @returns undefined if the served snapshot has no weights, or cannot be searched: the new one may solve the problem.
 */
export async function countKeptWeights(
  pool: SearchPool,
  served: FoundIndex | undefined,
  weights: Weights,
  options: RetryOptions,
): Promise<{ had: number; have: number } | undefined> {
  if (served === undefined || !isReadable(served) || !served.meta.has_weights) return undefined;
  let had = 0;
  let have = 0;
  try {
    const pages = new PageReader(pool, served.index, { stallMs: STALL_MS, ...options }, WEIGHED);
    let after: string | undefined;
    do {
      const { entries, last } = await pages.read(after);
      had += entries.length;
      have += entries.filter((entry) => weights.of(decodeEntry(entry).name) > 0).length;
      after = last;
    } while (after !== undefined);
  } catch (error) {
    options.signal.throwIfAborted();
    options.log.warn({ err: error }, 'the weights of the served snapshot could not be read and compared');
    return undefined;
  }
  return { had, have };
}
