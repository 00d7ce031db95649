/**
 * npm hands on to its child the Ctrl-C that the terminal has sent to both: a second signal that comes so soon is the
 * first one, in milliseconds.
 */
const SAME_MS = 500;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Calls `stop` when the process is told to end. Told again, it ends at once.
 * @returns what takes this back.
 */
export function onStopSignal(stop: () => void): () => void {
  let told: number | undefined;
  const take = () => {
    if (told === undefined) {
      told = Date.now();
      stop();
    } else if (Date.now() - told > SAME_MS) process.exit(130);
  };
  for (const signal of SIGNALS) process.on(signal, take);
  return () => {
    for (const signal of SIGNALS) process.off(signal, take);
  };
}
