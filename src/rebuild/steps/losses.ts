import { runSearches } from '../../elasticsearch/msearch.js';
import type { SearchPool } from '../../elasticsearch/search-pool.js';
import { entriesInNameOrder } from '../../snapshot/name-order.js';
import { decodeEntry } from '../../snapshot/package-document.js';
import { isReadable, type FoundIndex, type Snapshot } from '../../snapshot/snapshot.js';
import { DatasetError } from '../../lists/dataset-error.js';
import type { Weights } from '../../lists/weights.js';
import { retry, type RetryOptions } from '../retry.js';

/** Entries per page. A usual page has 240 KB, a page of the longest possible entries 22 MB. */
const PAGE = 2000;

/** Reading the old snapshot fails after this time without progress, in milliseconds. */
const STALL_MS = 60_000;

/** Identifies these searches in Elasticsearch's tasks and slow logs. */
const OPAQUE_ID = 'weights';

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
 * Compares the weights of the served snapshot with the new weights. The packages must have been passed to
 * `weights.join`. If the served snapshot cannot be searched, the error is logged and any weights are accepted: the new
 * snapshot may solve the problem.
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
    for await (const names of weighedNames(pool, served, { stallMs: STALL_MS, ...options })) {
      had += names.length;
      have += names.filter((name) => weights.hasWeight(name)).length;
    }
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

async function* weighedNames(
  pool: SearchPool,
  { index, shards }: Snapshot,
  options: RetryOptions,
): AsyncGenerator<string[]> {
  let after: string | undefined;
  do {
    const body = entriesInNameOrder(PAGE, shards, after, undefined, WEIGHED);
    const [hits] = await retry(() => runSearches(pool, index, [body], OPAQUE_ID), options);
    const names = (hits?.entries ?? []).map((entry) => decodeEntry(entry).name);
    yield names;
    after = names.length < PAGE ? undefined : names.at(-1);
  } while (after !== undefined);
}
