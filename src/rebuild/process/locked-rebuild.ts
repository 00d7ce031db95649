import { writeFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { FlipError } from '../steps/flip.js';
import { LockLostError, UNSHARED_LOCK, type HeldLock } from './lock.js';
import { failed, type Outcome } from './outcome.js';
import type { RebuildContext } from '../rebuild-context.js';
import { rebuild, type RebuildOptions } from '../pipeline.js';

/** Time limit of the cleanup after a stop, in milliseconds: process managers kill after ten seconds. */
const STOP_MS = 8_500;

/** Added to the niceness of this process. It then gets a quarter of a contended processor, enough to renew the lock. */
const NICENESS = 5;

/** Makes the kernel's out-of-memory killer choose this process before a server (range: -1000 to 1000). */
const OOM_SCORE_ADJ = 500;

/**
 * Acquires the lock, and rebuilds with a lower priority than servers. If the cleanup after a stop takes too long, the
 * process exits, and the next rebuild cleans up.
 * @param onHeld called with the owner of the lock, before anything is built.
 * @returns undefined if another rebuild holds the lock.
 * @throws {LockUnavailableError}
 */
export async function acquireAndRebuild(
  context: RebuildContext,
  options: RebuildOptions,
  onHeld: (owner: string) => void = () => undefined,
): Promise<Outcome | undefined> {
  const giveUp = () => {
    context.log.fatal('the cleanup after the stop takes too long; the next rebuild cleans up');
    process.exit(1);
  };
  const limitCleanup = () => setTimeout(giveUp, STOP_MS).unref();
  // The process may have been stopped while it connected.
  if (options.signal.aborted) limitCleanup();
  else options.signal.addEventListener('abort', limitCleanup);
  const held = context.lock === undefined ? UNSHARED_LOCK : await context.lock.acquire();
  if (held === undefined) return undefined;
  // The priority is lowered only now: while the lock is being acquired, a client may be waiting for the response to
  // `/rebuild`.
  yieldToServers();
  onHeld(held.owner);
  return rebuildUnderLock(held, context, options);
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

/** Publishes progress and outcome to all replicas, and releases the lock. Never rejects: failures are logged. */
export async function rebuildUnderLock(
  held: HeldLock,
  context: RebuildContext,
  options: RebuildOptions,
): Promise<Outcome> {
  const unpublish = context.status?.publish(() => options.progress.report, held.lost);
  const signal = AbortSignal.any([options.signal, held.lost]);
  try {
    const outcome = await attempt(held, context, { ...options, signal });
    // Once the lock is lost, the status may belong to another rebuild.
    const isHeld = await held.isStillHeld().catch(() => false);
    const mayPublish = isHeld && !('stopped' in outcome);
    if (mayPublish) await context.status?.end('failure' in outcome ? outcome.failure : undefined);
    return outcome;
  } finally {
    await unpublish?.();
    await held.release();
  }
}

async function attempt(held: HeldLock, context: RebuildContext, options: RebuildOptions): Promise<Outcome> {
  const { log } = context;
  const began = performance.now();
  try {
    options.signal.throwIfAborted();
    const built = await rebuild(context, options);
    const { index } = built;
    if (index === undefined) log.info('nothing to rebuild');
    else log.info({ index, seconds: (performance.now() - began) / 1000 }, 'rebuilt');
    return built;
  } catch (error) {
    const { phase } = options.progress.report;
    const isUncertain = error instanceof FlipError;
    if (options.signal.aborted && !held.lost.aborted && !isUncertain) {
      log.info({ phase }, 'the rebuild was stopped; what is served has not changed');
      return { stopped: true };
    }
    const cause = held.lost.aborted && !isUncertain ? new LockLostError() : (error as Error);
    const outcome = failed(cause, context.config.secrets);
    const { reason } = outcome.failure;
    log.error(
      { err: error, reason, phase },
      `the rebuild failed${isUncertain ? '' : '; what is served has not changed'}`,
    );
    return outcome;
  }
}
