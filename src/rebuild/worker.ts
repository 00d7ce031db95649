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
 * The process of one rebuild, forked by the server or by `npm run rebuild`. It acquires the lock, builds, flips, and ends.
 * SIGTERM, a message, or the end of the process that forked it stop it before the flip.
 */

/** How often progress is reported, in milliseconds. */
const REPORT_MS = 250;

/** Deadline of the cleanup after a stop, in milliseconds: a process manager kills what is left after ten seconds. */
const STOP_MS = 8_500;

/** Of a contended processor, this is a quarter: searches come first, and the lock is still renewed in time (-20 to 19). */
const NICENESS = 5;

/** Among processes that the kernel may end for want of memory, this one comes long before the server (-1000 to 1000). */
const OOM_SCORE_ADJ = 500;

const stopping = new AbortController();

/** @returns when the message has left this process; without a parent, at once. */
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

/** Searches come first: the scheduler prefers them, and the kernel ends this process before the server. */
function yieldToServer(): void {
  // Relative to the server, which may have been started with a niceness of its own: lowering it takes a privilege.
  setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + NICENESS));
  try {
    writeFileSync('/proc/self/oom_score_adj', String(OOM_SCORE_ADJ));
  } catch {
    // Only Linux has it, and a container may forbid it.
  }
}

async function run({ config, options, startedAt, logLevel, secrets }: WorkerInput): Promise<void> {
  endOnCrash(secrets);
  const log = createLogger(logLevel, false, {
    secrets,
    destination: { write: (line) => void send({ type: 'log', line }) },
  });
  const context = await createRebuildContext(config, log, 'the lock of the rebuild cannot be renewed');
  try {
    const held = await context.lock.acquire();
    if (held === undefined) {
      await send({ type: 'busy' });
      return;
    }
    // Not before: a client waits for the answer.
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
      onIndex: (index) => void send({ type: 'index', index }),
    });
    clearInterval(reporting);
    report();
    await send({ type: 'ended', outcome });
  } catch (error) {
    if (!(error instanceof LockUnavailableError)) throw error;
    await send({ type: 'lock-unavailable' });
  } finally {
    await context.close();
  }
}

process.on('message', (message: MessageToWorker) => {
  if (message.type === 'stop') stop();
  // Idle connections and timers of the clients would keep it alive for seconds.
  else void run(message.input).then(() => process.exit(0));
});
process.on('disconnect', stop);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
