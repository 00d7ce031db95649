import { FlipError } from './aliases.js';
import type { StatusStore } from './status-store.js';
import { LockLostError, type HeldLock } from './lock.js';
import { failed, type Outcome } from './outcome.js';
import { rebuild, type RebuildDeps, type RebuildOptions } from './rebuild.js';

interface Deps extends RebuildDeps {
  /** Undefined without Redis: there are no other replicas then. */
  status: StatusStore | undefined;
}

/**
 * Runs a rebuild under a lock, publishes its progress and outcome to all replicas, and releases the lock.
 * Never rejects: failures are logged.
 */
export async function rebuildUnderLock(
  held: HeldLock,
  { status, ...deps }: Deps,
  options: RebuildOptions,
): Promise<Outcome> {
  const { progress, signal } = options;
  const unpublish = status?.publish(() => progress.report, held.lost);
  try {
    const outcome = await attempt(held, deps, { ...options, signal: AbortSignal.any([signal, held.lost]) });
    // Once the lock is lost, the status may belong to another rebuild.
    const isHeld = await held.isStillHeld().catch(() => false);
    const isPublished = isHeld && !('stopped' in outcome);
    if (isPublished) await status?.end('failure' in outcome ? outcome.failure : undefined);
    return outcome;
  } finally {
    await unpublish?.();
    await held.release();
  }
}

async function attempt(held: HeldLock, deps: RebuildDeps, options: RebuildOptions): Promise<Outcome> {
  const { log } = deps;
  const began = performance.now();
  try {
    options.signal.throwIfAborted();
    const built = await rebuild(deps, options);
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
    const outcome = failed(held.lost.aborted && !isUncertain ? new LockLostError() : (error as Error));
    const { reason } = outcome.failure;
    log.error(
      { err: error, reason, phase },
      `the rebuild failed${isUncertain ? '' : '; what is served has not changed'}`,
    );
    return outcome;
  }
}
