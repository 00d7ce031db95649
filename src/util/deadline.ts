/** A task did not end in time. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
}

/**
 * Runs a task with a signal that aborts after `ms` milliseconds, or when `signal` does. Not `AbortSignal.timeout`: if
 * only `AbortSignal.any` refers to it, Node 20 collects the signal and its timer as garbage.
 * @throws {DeadlineError} if the task fails after this time, or the reason of `signal` if it aborted.
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
