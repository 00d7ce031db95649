import { mkdirSync } from 'node:fs';
import lockfile from 'proper-lockfile';
import { SetupError, type Log } from './service.js';

/** Age after which a lock is stale, in milliseconds. A running process renews its lock before that. */
const STALE_MS = 10_000;

/**
 * Creates a folder, and allows only one `npm start` at a time to use it.
 * @param onLost is called if the lock is lost later, for example because `<folder>.lock` was deleted.
 * @param waitMs time to wait for another `npm start` to stop, in milliseconds. By default, the lock of a killed process
 * expires within this time.
 * @returns a function that releases the lock.
 * @throws {SetupError} if the folder is still locked after `waitMs`. Errors of the file system are thrown as they are.
 */
export async function lockFolder(
  folder: string,
  log: Log,
  onLost: (reason: SetupError) => void,
  waitMs = STALE_MS + 2000,
): Promise<() => Promise<void>> {
  mkdirSync(folder, { recursive: true });
  const lock = (retries: number) =>
    lockfile.lock(folder, {
      stale: STALE_MS,
      onCompromised: ({ message }) => onLost(new SetupError(`the lock of ${folder} is lost: ${message}`)),
      retries: { retries, factor: 1, minTimeout: waitMs / Math.max(1, retries) },
    });
  try {
    return await lock(0).catch((error: unknown) => {
      if (!isLocked(error)) throw error;
      log('Waiting for another `npm start` of this folder to stop …');
      return lock(12);
    });
  } catch (error) {
    if (!isLocked(error)) throw error;
    // If the clock was set back, the lock of a killed process does not expire in time.
    throw new SetupError(
      `another \`npm start\` of this folder is running: stop it first, or delete ${folder}.lock if there is none`,
      { cause: error },
    );
  }
}

function isLocked(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ELOCKED';
}
