/**
 * Runs a task with a signal that aborts after `ms` milliseconds, or when `signal` aborts. `AbortSignal.timeout` does
 * not work here: Node 20 garbage-collects such a signal and its timer if only `AbortSignal.any` refers to the signal.
 * @param onTimeout creates the error to throw if the task fails after this time.
 * @throws the reason of `signal` if `signal` has aborted, or if the task fails after `signal` aborted.
 */
export async function withDeadline<T>(
  ms: number,
  signal: AbortSignal | undefined,
  task: (signal: AbortSignal) => Promise<T>,
  onTimeout = (): Error => new Error(`timed out after ${ms / 1000} s`),
): Promise<T> {
  signal?.throwIfAborted();
  const ending = new AbortController();
  const abort = () => ending.abort(signal?.reason);
  const timer = setTimeout(() => ending.abort(onTimeout()), ms);
  signal?.addEventListener('abort', abort);
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
