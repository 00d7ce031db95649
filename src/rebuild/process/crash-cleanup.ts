import { discardIndex } from '../steps/prune.js';
import { failed, type Outcome } from './outcome.js';
import type { RebuildContext } from '../rebuild-context.js';
import type { RebuildProcess } from './rebuild-process.js';

/** Cleans up after a process that crashed or was killed, and publishes the failure. The lock expires. */
export async function cleanUpAfterCrash(
  child: RebuildProcess,
  error: Error,
  { alias, client, snapshots, lock, log, status }: RebuildContext,
): Promise<Outcome> {
  const { index, lockOwner, report } = child.state;
  await snapshots.refresh();
  const isServed = index !== undefined && snapshots.current?.index === index;
  // Elasticsearch may still execute a flip that it has received.
  const isUncertain = report.phase === 'flipping';
  const failure = isServed ? undefined : failed(error);
  if (isServed)
    log.warn({ err: error, index }, 'the rebuild process crashed after the flip; its snapshot is served');
  else {
    log.error(
      { err: error, index, phase: report.phase },
      `the rebuild failed; ${isUncertain ? 'it is unknown which snapshot is served' : 'what is served has not changed'}`,
    );
  }
  // Once the lock has expired, the status may belong to another rebuild.
  const isPublished =
    lockOwner === undefined || (await lock?.isHeldBy(lockOwner).catch(() => false)) === true;
  if (isPublished) await status?.end(failure?.failure);
  if (failure === undefined) return { index };
  if (index !== undefined) await discardIndex(client, alias, index, log);
  return failure;
}
