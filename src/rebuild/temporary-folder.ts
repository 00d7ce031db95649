import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Beginning of the folders' names; the number of their process and the time of its start follow. */
const PREFIX = 'package-registry-search-snapshot-';
const OWN = `${PREFIX}${process.pid}-${Math.floor(performance.timeOrigin)}-`;

/** Creates an empty folder of this process. @returns its path. */
export function createTemporaryFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), OWN));
}

/**
 * Removes the folders of processes that were killed. One of them may have had this process's number: in a container it is
 * always the same.
 */
export async function removeOrphanedFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = name.startsWith(PREFIX) ? parseInt(name.slice(PREFIX.length), 10) : NaN;
    const inUse = pid === process.pid ? name.startsWith(OWN) : isAlive(pid);
    if (Number.isNaN(pid) || inUse) continue;
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch((error: unknown) => {
      // This process may not delete another user's files.
      if (!['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It may be another user's.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
