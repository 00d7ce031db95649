import { writeFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { snapshotIdOf } from '../snapshot/index-names.js';
import { failureReason } from './failure-reason.js';
import { HeldLock } from './held-lock.js';
import { rebuild, type Built, type RebuildOptions } from './pipeline.js';
import { Progress, type Report } from './progress.js';
import type { RebuildContext } from './rebuild-context.js';
import type { Ending } from './state.js';
import { FlipError } from '../publish/flip.js';

/** Time limit of the cleanup after a stop, in milliseconds: process managers kill after ten seconds. */
const STOP_MS = 8_500;

/** Added to the niceness of this process. It then gets a quarter of a contended processor, enough to renew the lock. */
const NICENESS = 5;

/** Makes the kernel's out-of-memory killer choose this process before a server (range: -1000 to 1000). */
const OOM_SCORE_ADJ = 500;

interface Options extends Omit<RebuildOptions, 'progress' | 'renew'> {
  /** Called with each change of the progress. */
  onProgress?: (report: Report) => void;
}

/** How a rebuild ended, and what was built. */
type Outcome = Ending & { built?: Built | undefined };

/**
 * Rebuilds in this process, which gets a lower priority than servers. The caller has acquired the lock for `owner`. If
 * the cleanup after a stop takes too long, the process exits, and the next rebuild cleans up. Never rejects: failures
 * are logged and recorded.
 */
export async function rebuildUnderLock(
  context: RebuildContext,
  owner: string,
  { onProgress, ...options }: Options,
): Promise<Outcome> {
  const { log, states } = context;
  const giveUp = () => {
    log.fatal('the cleanup after the stop takes too long; the next rebuild cleans up');
    process.exit(1);
  };
  const limitCleanup = () => setTimeout(giveUp, STOP_MS).unref();
  // The process may have been stopped while it connected.
  if (options.signal.aborted) limitCleanup();
  else options.signal.addEventListener('abort', limitCleanup);
  yieldToServers();

  let phase: string | undefined;
  const progress = new Progress((report) => {
    onProgress?.(report);
    if (report.phase !== phase) void lock.report();
    phase = report.phase;
  });
  const lock = new HeldLock(states, owner, log, () => progress.report);
  await lock.report();
  const signal = AbortSignal.any([options.signal, lock.lost]);
  const { built, ...ending } = await attempt(
    context,
    { ...options, progress, signal, renew: () => lock.report() },
    lock.lost,
  );
  await lock.release({ seconds: progress.seconds, ...ending });
  return { built, ...ending };
}

function yieldToServers(): void {
  // `NICENESS` is relative: a niceness below the inherited one would require a privilege.
  setPriority(Math.min(constants.priority.PRIORITY_LOW, getPriority() + NICENESS));
  try {
    writeFileSync('/proc/self/oom_score_adj', String(OOM_SCORE_ADJ));
  } catch {
    // The file exists only on Linux, and a container may forbid the write.
  }
}

async function attempt(
  context: RebuildContext,
  options: RebuildOptions,
  lost: AbortSignal,
): Promise<Outcome> {
  const { log } = context;
  try {
    options.signal.throwIfAborted();
    const built = await rebuild(context, options);
    if (built === undefined) {
      log.info('nothing to rebuild');
      return { outcome: 'unchanged' };
    }
    const { index, packages } = built;
    log.info({ index, seconds: options.progress.seconds }, 'rebuilt');
    return { outcome: 'rebuilt', built, snapshot: snapshotIdOf(index), packages };
  } catch (error) {
    const { phase } = options.progress.report;
    const isUncertain = error instanceof FlipError;
    if (options.signal.aborted && !lost.aborted && !isUncertain) {
      log.info({ phase }, 'the rebuild was stopped; what is served has not changed');
      return { outcome: 'stopped' };
    }
    const cause = (lost.aborted && !isUncertain ? lost.reason : error) as Error;
    const reason = failureReason(cause, context.config.secrets);
    const consequence = isUncertain ? '' : '; what is served has not changed';
    log.error({ err: error, reason, phase }, `the rebuild failed${consequence}`);
    return { outcome: 'failed', reason };
  }
}
