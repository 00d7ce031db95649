import type { SearchPool } from '../../elasticsearch/search-pool.js';
import { decodeEntry } from '../../snapshot/package-document.js';
import { isReadable, type FoundIndex } from '../../snapshot/snapshot.js';
import { DatasetError } from '../../lists/fetch/dataset-error.js';
import type { Weights } from '../../lists/weights.js';
import type { RetryOptions } from '../retry.js';
import { PageReader } from './page-reader.js';

/** Reading the old snapshot fails after this time without progress, in milliseconds. */
const STALL_MS = 60_000;

const WEIGHED = { filter: [{ range: { weight: { gt: 0 } } }] };

/** @throws {DatasetError} if the new snapshot is smaller than the served one by more than `maxPercent`. */
export function assertNotShrunk(total: number, previous: number | undefined, maxPercent: number): void {
  if (previous === undefined || total * 100 >= previous * (100 - maxPercent)) return;
  throw new DatasetError(
    `the snapshot has ${total} packages, the previous one ${previous}: smaller by more than ${maxPercent} %` +
      ' (REBUILD_MAX_SHRINK_PERCENT); accept it with force=true or --force',
  );
}

/**
 * Compares the weights of the served snapshot with the new weights. If the served snapshot cannot be searched, the
 * error is logged, and all new weights are accepted: the new snapshot may solve the problem.
 * @param pool must have a long timeout.
 * @throws {DatasetError} if fewer than half of the names that had a weight have one now.
 */
export async function assertWeightsKept(
  pool: SearchPool,
  served: FoundIndex | undefined,
  weights: Weights,
  options: RetryOptions,
): Promise<void> {
  if (served === undefined || !isReadable(served) || !served.meta.has_weights) return;
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
    return;
  }
  if (have * 2 >= had) return;
  throw new DatasetError(
    `WEIGHTS_URL: of ${had} names that had a weight, ${have} have one now: fewer than half;` +
      ' accept it with force=true or --force',
  );
}
