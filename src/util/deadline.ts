/** A task did not end in time. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
}

/**
 * Runs a task with a signal that aborts after `ms` milliseconds, or when `signal` aborts. `AbortSignal.timeout` does
 * not work here: Node 20 garbage-collects such a signal and its timer if only `AbortSignal.any` refers to the signal.
 * @throws {DeadlineError} if the task fails after this time.
 * @throws the reason of `signal` if the task fails after `signal` aborted.
 */
export async function withDeadline<T>(
  ms: number,
  signal: AbortSignal | undefined,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  const abort = () => ending.abort(signal?.reason);
  const timer = setTimeout(() => ending.abort(new DeadlineError(`timed out after ${ms / 1000} s`)), ms);
  signal?.addEventListener('abort', abort);
  if (signal?.aborted === true) abort();
  try {
    return await task(ending.signal);
  } catch (error) {
    ending.signal.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
