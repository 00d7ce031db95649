import { ignoreUserSignals } from '../../util/signals.js';
import { secretsIn } from '../../config/secrets.js';
import { readConfig } from '../../config/config.js';
import { createLogger } from '../../util/log.js';
import { endOnCrash } from '../../util/uncaught-errors.js';
import { LockUnavailableError } from './lock.js';
import { acquireAndRebuild } from './locked-rebuild.js';
import { Progress, type Phase } from './progress.js';
import { createRebuildContext } from '../rebuild-context.js';
import type { RebuildMessage, RebuildState, StartOptions } from './rebuild-process.js';

/** How often progress is reported, in milliseconds. */
const REPORT_MS = 250;

/**
 * Rebuilds for the server that has started this process, reports to it, and exits. A stop signal or the exit of the
 * server stops the rebuild before the flip.
 */
export async function rebuildForServer(env: NodeJS.ProcessEnv, options: StartOptions): Promise<void> {
  const secrets = secretsIn(env);
  endOnCrash(secrets);
  ignoreUserSignals();
  const signal = stopSignal();
  const config = readConfig(env);
  const log = createLogger(config.logLevel, {
    secrets,
    destination: { write: (line) => void send({ type: 'log', line }) },
  });
  const context = await createRebuildContext(config, log, 'the rebuild lock cannot be renewed');
  const change = (changed: Partial<RebuildState>) => void send({ type: 'state', changed });
  let phase: Phase | undefined;
  const report = () => {
    const { user, system } = process.cpuUsage();
    const usage = { memoryBytes: process.memoryUsage.rss(), cpuSeconds: (user + system) / 1e6 };
    change({ report: progress.report, usage });
  };
  const progress = new Progress(new Date(), (current) => {
    if (current.phase !== phase) report();
    phase = current.phase;
  });
  let reporting: NodeJS.Timeout | undefined;
  const onHeld = (lockOwner: string) => {
    // The server needs the start time before it responds.
    report();
    change({ lockOwner });
    void send({ type: 'started' });
    reporting = setInterval(report, REPORT_MS);
  };
  try {
    const outcome = await acquireAndRebuild(
      context,
      {
        ...options,
        progress,
        signal,
        onIndex: (index) => change({ index }),
      },
      onHeld,
    );
    clearInterval(reporting);
    if (outcome === undefined) await send({ type: 'busy' });
    else {
      report();
      await send({ type: 'ended', outcome });
    }
  } catch (error) {
    if (!(error instanceof LockUnavailableError)) throw error;
    await send({ type: 'lock-unavailable', reason: error.message });
  }
  await context.close();
  // Idle connections and timers would keep the process alive for seconds.
  process.exit();
}

/** Aborts on a stop signal, and when the server ends. */
function stopSignal(): AbortSignal {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.on('disconnect', stop);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
  // SIGHUP (the terminal was closed) is ignored. The server may run under `nohup`, and decides whether to stop this
  // process.
  process.on('SIGHUP', () => undefined);
  return stopping.signal;
}

/** Resolves when the message has been sent; without a server, at once. */
function send(message: RebuildMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
}
