/**
 * npm forwards a Ctrl-C to its child, although the terminal has sent it to both: a second signal within this
 * time is a duplicate. In milliseconds.
 */
const SAME_MS = 500;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Calls `stop` on the first stop signal. A second one ends the process at once.
 * @returns a function that removes the handlers.
 */
export function onStopSignal(stop: () => void): () => void {
  let stoppedAt: number | undefined;
  const take = () => {
    if (stoppedAt === undefined) {
      stoppedAt = Date.now();
      stop();
    } else if (Date.now() - stoppedAt > SAME_MS) process.exit(130);
  };
  for (const signal of SIGNALS) process.on(signal, take);
  return () => {
    for (const signal of SIGNALS) process.off(signal, take);
  };
}
