import { statfs } from 'node:fs/promises';
import { DatasetError } from './dataset-error.js';

/**
 * Bytes written between two checks of the free space. Each check requires room for as many, so that a transfer by itself
 * never uses what it has to leave to others; 1 MiB makes the cost of the checks (0.1 ms each) negligible.
 */
const ROOM_CHECK_BYTES = 2 ** 20;
/** Maximum age of such a check, in milliseconds, for a slow transfer to a disk that other processes fill. */
const ROOM_CHECK_MS = 1000;

/** Passes chunks on. @throws {DatasetError} beyond `maxBytes`. */
export async function* atMost(maxBytes: number, source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new DatasetError(`the dataset is larger than ${maxBytes} bytes`);
    yield chunk;
  }
}

/** Passes on chunks that are written to `folder`, as long as there is room for them. @throws {DatasetError} */
export async function* whileRoom(
  source: AsyncIterable<Buffer>,
  folder: string,
  roomForOthers: number,
): AsyncGenerator<Buffer> {
  let written = 0;
  let unchecked = 0;
  let checkedAt = -Infinity;
  for await (const chunk of source) {
    unchecked += chunk.length;
    if (unchecked > ROOM_CHECK_BYTES || performance.now() - checkedAt > ROOM_CHECK_MS) {
      if ((await roomIn(folder, roomForOthers)) < chunk.length + ROOM_CHECK_BYTES) {
        throw new DatasetError(
          `the dataset has more than ${written} bytes, and there is no room for more in the folder of temporary files`,
        );
      }
      unchecked = chunk.length;
      checkedAt = performance.now();
    }
    yield chunk;
    written += chunk.length;
  }
}

/** Fails before the first byte where the origin announces more than there is room for. @throws {DatasetError} */
export async function requireRoom(folder: string, roomForOthers: number, bytes: number): Promise<void> {
  const room = await roomIn(folder, roomForOthers);
  if (bytes <= room) return;
  throw new DatasetError(
    `the dataset has ${bytes} bytes, and there is room for ${Math.max(0, room)} in the folder of temporary files`,
  );
}

/** Free bytes in the file system of `folder` beyond those to leave to others; negative where there are fewer. */
async function roomIn(folder: string, roomForOthers: number): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize - roomForOthers;
}
