import { discardBuild } from './prune.js';
import { failed, type Outcome } from './outcome.js';
import type { RebuildContext } from './rebuild-context.js';
import { removeOrphanedFolders } from './temporary-folder.js';
import type { WorkerProcess } from './worker-process.js';

/** Removes what a worker that crashed or was killed has left behind, and publishes its failure. Its lock expires. */
export async function cleanUpAfterCrash(
  worker: WorkerProcess,
  error: Error,
  { alias, client, generations, lock, log, status }: RebuildContext,
): Promise<Outcome> {
  const { index, lockOwner, report } = worker;
  await generations.refresh();
  const isServed = index !== undefined && generations.current?.index === index;
  const failure = isServed ? undefined : failed(error);
  if (isServed)
    log.warn({ err: error, index }, 'the process of the rebuild ended after its snapshot was served');
  else {
    log.error(
      { err: error, index, phase: report.phase },
      'the rebuild failed; the previous snapshot stays in service',
    );
  }
  // Once the lock has expired, the status is that of the rebuild that has taken over.
  const isPublished = lockOwner === undefined || (await lock.isHeldBy(lockOwner).catch(() => false));
  if (isPublished) await status?.end(failure?.failure);
  await removeOrphanedFolders().catch((cause: unknown) => {
    log.warn(
      { err: cause },
      'the temporary files of a rebuild could not be removed; the next one tries again',
    );
  });
  if (failure === undefined) return { index };
  if (index !== undefined) {
    await discardBuild(client, alias, index).catch((cause: unknown) => {
      log.error(
        { index, err: cause },
        'its index, if it was created, could not be removed; the next rebuild tries again',
      );
    });
  }
  return failure;
}
