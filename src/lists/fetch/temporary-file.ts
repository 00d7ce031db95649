import { randomUUID } from 'node:crypto';
import { open, statfs, unlink, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatasetError } from './dataset-error.js';
import { CHUNK_BYTES } from './decompress.js';

/**
 * Bytes written between two checks of the free space. Each check requires `SPACE_CHECK_BYTES` of free space in addition
 * to the reserve, so the transfer itself never uses the reserve. At 1 MiB, the cost of the checks (0.1 ms each) is
 * negligible.
 */
const SPACE_CHECK_BYTES = 2 ** 20;
/** Maximum time between two checks, in milliseconds: other processes may fill the disk during a slow transfer. */
const SPACE_CHECK_MS = 1000;

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

/**
 * Passes on chunks, which the caller writes to a temporary file.
 * @param reservedBytes free space reserved for other files.
 * @throws {DatasetError} if the free space runs out.
 */
export async function* limitByFreeSpace(
  source: AsyncIterable<Buffer>,
  reservedBytes: number,
): AsyncGenerator<Buffer> {
  let written = 0;
  let unchecked = 0;
  let checkedAt = -Infinity;
  for await (const chunk of source) {
    unchecked += chunk.length;
    if (unchecked > SPACE_CHECK_BYTES || performance.now() - checkedAt > SPACE_CHECK_MS) {
      const { bavail, bsize } = await statfs(tmpdir());
      if (bavail * bsize - reservedBytes < chunk.length + SPACE_CHECK_BYTES) {
        throw new DatasetError(
          `the dataset has more than ${written} bytes, and the temporary folder has no room for more`,
        );
      }
      unchecked = chunk.length;
      checkedAt = performance.now();
    }
    yield chunk;
    written += chunk.length;
  }
}
