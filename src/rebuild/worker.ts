import { writeFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { endOnCrash } from '../uncaught-errors.js';
import { createLogger } from '../log.js';
import { LockUnavailableError } from './lock.js';
import { rebuildUnderLock } from './locked-rebuild.js';
import { Progress, type Phase } from './progress.js';
import { createRebuildContext } from './rebuild-context.js';
import type { MessageFromWorker, MessageToWorker, WorkerInput } from './worker-messages.js';

/**
 * Entry point of the process that runs one rebuild, forked by the server or by `npm run rebuild`. It acquires
 * the lock, builds, flips and exits. A stop signal, a `stop` message or the exit of the parent stops it
 * before the flip.
 */

/** How often progress is reported, in milliseconds. */
const REPORT_MS = 250;

/** Time limit of the cleanup after a stop, in milliseconds: process managers kill after ten seconds. */
const STOP_MS = 8_500;

/** Added to the server's niceness: a quarter of a contended processor, enough to renew the lock in time. */
const NICENESS = 5;

/** Makes the kernel's out-of-memory killer choose this process long before the server (-1000 to 1000). */
const OOM_SCORE_ADJ = 500;

const stopping = new AbortController();

/** Resolves when the message has been sent; without a parent, at once. */
function send(message: MessageFromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
}

function stop(): void {
  if (stopping.signal.aborted) return;
  stopping.abort();
  setTimeout(() => process.exit(1), STOP_MS).unref();
}

/** Lowers the priority of this process below the server's, for the processor and the out-of-memory killer. */
function yieldToServer(): void {
  // Relative to the inherited niceness: reducing that would require a privilege.
  setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + NICENESS));
  try {
    writeFileSync('/proc/self/oom_score_adj', String(OOM_SCORE_ADJ));
  } catch {
    // Linux only, and a container may forbid it.
  }
}

async function run({ config, options, startedAt, logLevel, secrets }: WorkerInput): Promise<void> {
  endOnCrash(secrets);
  const log = createLogger(logLevel, false, {
    secrets,
    destination: { write: (line) => void send({ type: 'log', line }) },
  });
  const context = await createRebuildContext(config, log, 'the rebuild lock cannot be renewed');
  try {
    const held = await context.lock.acquire();
    if (held === undefined) {
      await send({ type: 'busy' });
      return;
    }
    // Only now: a client is waiting for the response to `/rebuild`.
    yieldToServer();
    let phase: Phase | undefined;
    const report = () => {
      const { user, system } = process.cpuUsage();
      const usage = { memoryBytes: process.memoryUsage.rss(), cpuSeconds: (user + system) / 1e6 };
      void send({ type: 'progress', report: progress.report, usage });
    };
    const progress = new Progress(startedAt, (current) => {
      if (current.phase !== phase) report();
      phase = current.phase;
    });
    void send({ type: 'started', lockOwner: held.owner });
    const reporting = setInterval(report, REPORT_MS);
    const outcome = await rebuildUnderLock(held, context, {
      ...options,
      progress,
      signal: stopping.signal,
      onSeen: (seen) => void send({ type: 'seen', seen }),
      onIndex: (index) => void send({ type: 'index', index }),
    });
    clearInterval(reporting);
    report();
    await send({ type: 'ended', outcome });
  } catch (error) {
    if (!(error instanceof LockUnavailableError)) throw error;
    await send({ type: 'lock-unavailable', reason: error.message });
  } finally {
    await context.close();
  }
}

process.on('message', (message: MessageToWorker) => {
  if (message.type === 'stop') stop();
  // Exit explicitly: idle connections and timers would keep the process alive for seconds.
  else void run(message.input).then(() => process.exit(0));
});
process.on('disconnect', stop);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
// The process that started this one decides whether the end of a terminal stops it (see `nohup`), and says so.
process.on('SIGHUP', () => undefined);
