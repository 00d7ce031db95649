/**
 * npm hands on to its child the Ctrl-C that the terminal has sent to both: a second signal that comes so soon is the
 * first one, in milliseconds.
 */
const SAME_MS = 500;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Calls `stop` on the first stop signal. A second one ends the process at once.
 * @returns what takes this back.
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
