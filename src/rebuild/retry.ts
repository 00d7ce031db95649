import { setTimeout as pause } from 'node:timers/promises';
import { errors } from '@elastic/elasticsearch';
import { EngineUnavailableError, RETRYABLE_STATUSES } from '../clients/search-pool.js';
import type { Logger } from '../log.js';

/**
 * A step of a rebuild may take hours. It fails after this time without any progress, in milliseconds: enough for the
 * restart of a node, and more than a healthy merge or copy ever pauses.
 */
const STALL_MS = 600_000;

/** Pause before a request is sent again, in milliseconds. */
const RETRY_PAUSE_MS = 1000;

/** Polls of a step that has just begun, and of one that takes long, in milliseconds: small indices need no second. */
const SHORTEST_POLL_MS = 50;
const LONGEST_POLL_MS = 2000;
const POLL_GROWTH = 1.5;

/** How often a step that takes long is logged, in milliseconds. */
const LOG_MS = 60_000;

/** Statuses of a node that is busy, starting or away. */
const REBUILD_RETRYABLE_STATUSES = [429, ...RETRYABLE_STATUSES];

/** The same request may succeed later. */
export class RetryableError extends Error {
  override readonly name = 'RetryableError';
}

/** A step made no progress for `stallMs`. */
export class StalledError extends Error {
  override readonly name = 'StalledError';
}

export interface RetryOptions {
  /** Aborts when the server stops or the lock is lost: ends the wait at once. */
  signal: AbortSignal;
  log: Logger;
  /** Time without progress after which a step fails, in milliseconds. */
  stallMs?: number | undefined;
}

/** Whether the same request may succeed later: the engine is away, starting or too busy. */
function isRetryable(error: unknown): error is Error {
  if (error instanceof errors.ResponseError)
    return REBUILD_RETRYABLE_STATUSES.includes(error.statusCode ?? 0);
  return (
    error instanceof RetryableError ||
    error instanceof EngineUnavailableError ||
    error instanceof errors.ConnectionError ||
    error instanceof errors.NoLivingConnectionsError ||
    error instanceof errors.TimeoutError
  );
}

/**
 * Sends a request until it succeeds or has failed for `stallMs`.
 * @param send must be idempotent: an earlier attempt may have succeeded without a response. Its signal is a new one for
 * each attempt, because the client leaves a listener on every signal it is given.
 * @throws {EngineUnavailableError} if it never got a response; what the engine responded otherwise, and at once if that is
 * permanent.
 */
export async function retry<T>(
  send: (signal: AbortSignal) => Promise<T>,
  { signal, log, stallMs = STALL_MS }: RetryOptions,
): Promise<T> {
  let failingSince: number | undefined;
  for (;;) {
    try {
      return await send(AbortSignal.any([signal]));
    } catch (error) {
      if (signal.aborted || !isRetryable(error)) throw error;
      if (failingSince === undefined) log.warn({ err: error }, 'a request of the rebuild is retried');
      failingSince ??= performance.now();
      if (performance.now() - failingSince >= stallMs) throw givenUp(error, stallMs);
    }
    await pause(RETRY_PAUSE_MS, undefined, { signal });
  }
}

/** The engine's own words if there are any; otherwise no address of it, because reasons are shown to clients. */
function givenUp(error: Error, stallMs: number): Error {
  if (error instanceof RetryableError) return error;
  return new EngineUnavailableError(`Elasticsearch did not respond for ${describeMs(stallMs)}`, {
    cause: error,
  });
}

function describeMs(ms: number): string {
  return ms < 60_000 ? `${ms / 1000} seconds` : `${ms / 60_000} minutes`;
}

/** What one look at a long step found. */
export interface StepState {
  done: boolean;
  /** Everything observable that changes while the step advances; compared by value. */
  evidence: unknown;
}

/**
 * Polls a long step until it is done. Requests that fail for now are polls without progress.
 * @param step names it in the log and in the error, such as `the merge`.
 * @throws {StalledError} after `stallMs` without a change of `evidence`.
 */
export async function waitUntilDone(
  step: string,
  look: (signal: AbortSignal) => Promise<StepState>,
  { signal, log, stallMs = STALL_MS }: RetryOptions,
): Promise<void> {
  const began = performance.now();
  let loggedAt = began;
  let progressedAt = began;
  let seen: string | undefined;
  let failure: Error | undefined;
  let pollMs = SHORTEST_POLL_MS;
  for (;;) {
    try {
      const { done, evidence } = await look(AbortSignal.any([signal]));
      if (done) return;
      failure = undefined;
      const found = JSON.stringify(evidence);
      if (found !== seen) progressedAt = performance.now();
      seen = found;
    } catch (error) {
      if (signal.aborted || !isRetryable(error)) throw error;
      if (failure === undefined) log.warn({ err: error, step }, 'a long step cannot be observed');
      failure = error;
    }
    const now = performance.now();
    // Judged after a look: a process that was suspended sees first what happened meanwhile.
    if (now - progressedAt >= stallMs) {
      throw new StalledError(`${step} made no progress for ${describeMs(stallMs)}`, { cause: failure });
    }
    if (now - loggedAt >= LOG_MS) {
      loggedAt = now;
      log.info({ step, seconds: Math.round((now - began) / 1000), state: seen }, 'a long step is running');
    }
    await pause(pollMs, undefined, { signal });
    pollMs = Math.min(pollMs * POLL_GROWTH, LONGEST_POLL_MS);
  }
}
