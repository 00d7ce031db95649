import { setTimeout as pause } from 'node:timers/promises';
import { errors } from '@elastic/elasticsearch';
import { isSilent } from '../elasticsearch/elasticsearch.js';
import {
  ElasticsearchUnavailableError,
  NodeUnavailableError,
} from '../elasticsearch/elasticsearch-errors.js';
import type { Logger } from '../util/log.js';
import { UNAVAILABLE_STATUSES } from '../util/http-response.js';

/**
 * A step fails after this time without progress, in milliseconds: enough for a node to restart, and longer
 * than any pause of a healthy merge or copy. With progress, a step may take hours.
 */
const STALL_MS = 600_000;

/** Pause before a request is sent again, in milliseconds. */
const RETRY_PAUSE_MS = 1000;

/**
 * Bounds of the growing poll interval of a step, in milliseconds. The first polls are frequent, because a step on a
 * small index takes less than a second.
 */
const SHORTEST_POLL_MS = 50;
const LONGEST_POLL_MS = 2000;
const POLL_GROWTH = 1.5;

/** Statuses that mean that a node is overloaded, starting or unavailable. */
const RETRYABLE_STATUSES = [429, ...UNAVAILABLE_STATUSES];

export interface RetryOptions {
  /** Aborts when the server stops or the lock is lost, and ends the wait at once. */
  signal: AbortSignal;
  log: Logger;
  /** Time without progress after which a step fails, in milliseconds. */
  stallMs?: number | undefined;
  /** Pause before a request is sent again, in milliseconds. */
  pauseMs?: number | undefined;
}

export interface LongStepOptions extends RetryOptions {
  /** Called with the bytes written so far, and the expected total. */
  onBytes: (done: number, total: number) => void;
}

/** Whether the same request may succeed later: Elasticsearch is unavailable, starting or overloaded. */
export function isRetryable(error: unknown): error is Error {
  if (error instanceof errors.ResponseError) return RETRYABLE_STATUSES.includes(error.statusCode ?? 0);
  return error instanceof ElasticsearchUnavailableError || isSilent(error);
}

/**
 * Sends a request until it succeeds or has failed for `stallMs`.
 * @param send must be idempotent: an earlier attempt may have succeeded without a response. Each attempt gets a new
 * signal, because the client leaves a listener on every signal.
 * @throws {ElasticsearchUnavailableError} after `stallMs` without success. Permanent errors are thrown at once.
 */
export async function retry<T>(
  send: (signal: AbortSignal) => Promise<T>,
  { signal, log, stallMs = STALL_MS, pauseMs = RETRY_PAUSE_MS }: RetryOptions,
): Promise<T> {
  let failingSince: number | undefined;
  for (;;) {
    try {
      return await send(AbortSignal.any([signal]));
    } catch (error) {
      if (signal.aborted || !isRetryable(error)) throw error;
      if (failingSince === undefined) log.warn({ err: error }, 'a rebuild request failed and is retried');
      failingSince ??= performance.now();
      if (performance.now() - failingSince >= stallMs) throw givenUp(error, stallMs);
    }
    await pause(pauseMs, undefined, { signal });
  }
}

/** Keeps an error that says more than that Elasticsearch did not respond, and whose message has no addresses. */
function givenUp(error: Error, stallMs: number): Error {
  const saysMore = error instanceof ElasticsearchUnavailableError && !(error instanceof NodeUnavailableError);
  if (saysMore) return error;
  const reason = `Elasticsearch did not respond for ${describeMs(stallMs)}`;
  return new ElasticsearchUnavailableError(reason, { cause: error });
}

function describeMs(ms: number): string {
  return ms < 60_000 ? `${ms / 1000} seconds` : `${ms / 60_000} minutes`;
}

/**
 * Polls a long step until it is done.
 * @param step name of the step in the error, such as `the merge`.
 * @param look polls once. `evidence` is all state that changes while the step advances. It is compared by value.
 * @throws {Error} after `stallMs` without a change of `evidence`, and the errors of `retry`.
 */
export async function waitUntilDone(
  step: string,
  look: (signal: AbortSignal) => Promise<{ done: boolean; evidence: unknown }>,
  options: RetryOptions,
): Promise<void> {
  const { signal, stallMs = STALL_MS } = options;
  let progressedAt = performance.now();
  let seen: string | undefined;
  let pollMs = SHORTEST_POLL_MS;
  for (;;) {
    const { done, evidence } = await retry(look, options);
    if (done) return;
    const found = JSON.stringify(evidence);
    if (found !== seen) progressedAt = performance.now();
    seen = found;
    // Checked after the poll: after a suspension, the process must first read the current state.
    if (performance.now() - progressedAt >= stallMs)
      throw new Error(`${step} made no progress for ${describeMs(stallMs)}`);
    await pause(pollMs, undefined, { signal });
    pollMs = Math.min(pollMs * POLL_GROWTH, LONGEST_POLL_MS);
  }
}
