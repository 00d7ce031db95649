import {
  ElasticsearchUnavailableError,
  IndexGoneError,
  SearchRefusedError,
} from '../../elasticsearch/elasticsearch-errors.js';
import { ProcessFailedError } from '../../rebuild/rebuild-service.js';
import { StateUnavailableError } from '../../rebuild/state.js';
import { NoChainError } from '../../snapshot/chains.js';
import { TooManyExportsError } from '../../search/snapshot-exports.js';
import { OverloadedError } from '../../search/concurrency-limiter.js';
import { NotInitializedError, SnapshotGoneError, type GoneReason } from '../../snapshot/snapshot-watcher.js';
import { Problem, PROBLEMS, retryAfter, type ProblemCode } from './problem.js';

/** The texts of `snapshot_gone`. */
const GONE: Record<GoneReason, string> = {
  replaced: PROBLEMS.snapshot_gone.detail,
  deleted: 'snapshot was deleted during this request; start again without it',
  changes_deleted: 'changes after since were deleted; fetch the whole list again',
  not_in_chain:
    'since did not lead to the snapshot that is read, or is older than the snapshots whose changes are kept; fetch the ' +
    'whole list again',
};

/** The problem of each class of errors: its code and, optionally, its text and `Retry-After` in seconds. */
const PROBLEM_OF_ERROR: readonly [
  new (...args: never[]) => Error,
  ProblemCode,
  detail?: string,
  seconds?: number,
][] = [
  [NotInitializedError, 'initializing'],
  [
    NoChainError,
    'search_unavailable',
    'the changes of this snapshot were not recorded; the next rebuild records them, if its key may do so',
    60,
  ],
  [ElasticsearchUnavailableError, 'search_unavailable'],
  [SearchRefusedError, 'search_unavailable'],
  [IndexGoneError, 'search_unavailable'],
  [OverloadedError, 'search_unavailable', 'too many searches at the moment', 1],
  [TooManyExportsError, 'search_unavailable', 'too many exports at the moment', 10],
  [ProcessFailedError, 'search_unavailable', 'the rebuild process could not be started', 5],
];

/** The problem of an error that is none itself. An error of an unknown class is a defect and becomes `internal`. */
export function toProblem(error: unknown): Problem {
  if (error instanceof SnapshotGoneError)
    return new Problem('snapshot_gone', { detail: GONE[error.reason], cause: error });
  if (error instanceof StateUnavailableError) {
    const detail = `no rebuild can start: ${error.message}`;
    return new Problem('search_unavailable', { detail, headers: retryAfter(5), cause: error });
  }
  const [, code = 'internal', detail, seconds] =
    PROBLEM_OF_ERROR.find(([type]) => error instanceof type) ?? [];
  const headers = seconds === undefined ? {} : retryAfter(seconds);
  return new Problem(code, { ...(detail !== undefined && { detail }), headers, cause: error });
}
