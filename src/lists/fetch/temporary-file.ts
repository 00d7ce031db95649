import { randomUUID } from 'node:crypto';
import { open, unlink, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatasetError } from './dataset-error.js';
import { CHUNK_BYTES } from './decompress.js';

/**
 * Creates a temporary file that disappears when it is closed. If this process is killed, the file disappears, too. If
 * the process is killed between `open` and `unlink`, an empty file is left.
 */
export async function openTemporaryFile(): Promise<FileHandle> {
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

/** Reads a file from its beginning, and leaves it open. */
export async function* chunksOf(file: FileHandle): AsyncGenerator<Buffer> {
  for (let position = 0; ;) {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.allocUnsafe(CHUNK_BYTES), position });
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}
