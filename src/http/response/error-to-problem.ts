import {
  ElasticsearchUnavailableError,
  IndexGoneError,
  SearchRefusedError,
} from '../../clients/elasticsearch-errors.js';
import { LockUnavailableError } from '../../rebuild/process/lock.js';
import { ProcessFailedError } from '../../rebuild/process/rebuild-process.js';
import { NoChainError } from '../../snapshot/chains.js';
import { EarlierMappingError } from '../../snapshot/snapshot.js';
import { TooManyExportsError } from '../../search/export.js';
import { OverloadedError } from '../../search/concurrency-limiter.js';
import { NotInitializedError, SnapshotGoneError, type GoneReason } from '../../snapshot/snapshot-watcher.js';
import { Problem, PROBLEMS, retryAfter } from './problem.js';

/** The texts of `snapshot_gone`. */
const GONE: Record<GoneReason, string> = {
  replaced: PROBLEMS.snapshot_gone.detail,
  deleted: 'snapshot was deleted during this request; start again without it',
  expired: 'since is older than the snapshots whose changes are kept; fetch the whole list again',
  changes_deleted: 'changes after since were deleted; fetch the whole list again',
  not_in_chain:
    'since did not lead to the snapshot that is read: it was rolled back or is no earlier one, or a later one could not be ' +
    'compared with it; fetch the whole list again',
};

/** The problem of an error. Every error that is not listed here is a defect: `internal`. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof NotInitializedError) return new Problem('initializing', { cause: error });
  if (error instanceof EarlierMappingError) {
    const detail =
      'an earlier release built this snapshot, without a field that this endpoint needs; the next rebuild adds it';
    return new Problem('initializing', { detail, headers: retryAfter(60), cause: error });
  }
  if (error instanceof NoChainError) {
    const detail =
      'the changes of this snapshot were not recorded; the next rebuild records them, if its key may do so';
    return new Problem('search_unavailable', { detail, headers: retryAfter(60), cause: error });
  }
  if (error instanceof SnapshotGoneError)
    return new Problem('snapshot_gone', { detail: GONE[error.reason], cause: error });
  if (
    error instanceof ElasticsearchUnavailableError ||
    error instanceof SearchRefusedError ||
    error instanceof IndexGoneError
  ) {
    return new Problem('search_unavailable', { cause: error });
  }
  if (error instanceof OverloadedError) {
    const detail = 'too many searches at the moment';
    return new Problem('search_unavailable', { detail, headers: retryAfter(1), cause: error });
  }
  if (error instanceof TooManyExportsError) {
    const detail = 'too many exports at the moment';
    return new Problem('search_unavailable', { detail, headers: retryAfter(10), cause: error });
  }
  if (error instanceof LockUnavailableError) {
    const detail = `no rebuild can start: ${error.message}`;
    return new Problem('search_unavailable', { detail, headers: retryAfter(5), cause: error });
  }
  if (error instanceof ProcessFailedError) {
    const detail = 'the rebuild process could not be started';
    return new Problem('search_unavailable', { detail, headers: retryAfter(5), cause: error });
  }
  return new Problem('internal', { cause: error });
}
