import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Prefix of the folders' names, followed by the id and the start time of their process. */
const PREFIX = 'package-registry-search-snapshot-';
const OWN = `${PREFIX}${process.pid}-${Math.floor(performance.timeOrigin)}-`;

/** Creates an empty folder of this process. @returns its path. */
export function createTemporaryFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), OWN));
}

/**
 * Removes the folders of processes that no longer run. One with the id of this process may be such a
 * leftover: in a container, the id is the same after every restart.
 */
export async function removeOrphanedFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = name.startsWith(PREFIX) ? parseInt(name.slice(PREFIX.length), 10) : NaN;
    const inUse = pid === process.pid ? name.startsWith(OWN) : isAlive(pid);
    if (Number.isNaN(pid) || inUse) continue;
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch((error: unknown) => {
      // Another user's folder, which this process may not delete.
      if (!['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
