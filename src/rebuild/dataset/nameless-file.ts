import { randomUUID } from 'node:crypto';
import { open, unlink, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatasetError } from './dataset-error.js';

/**
 * Creates a temporary file that disappears when it is closed. If this process is killed, nothing is left: at most an empty file,
 * between the two calls. So nothing has to be cleaned up in a folder that other processes may use, too.
 */
export async function openNamelessFile(): Promise<FileHandle> {
  const path = join(tmpdir(), `package-registry-search-${randomUUID()}`);
  try {
    const file = await open(path, 'wx+', 0o600);
    await unlink(path);
    return file;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new DatasetError(`no file can be created in the temporary folder (TMPDIR): ${code}`, { cause });
  }
}
