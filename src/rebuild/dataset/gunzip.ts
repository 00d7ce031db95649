import { createGunzip, type Gunzip } from 'node:zlib';
import { DatasetError } from './dataset-error.js';

/** Bytes of text per chunk: the cost of a read is negligible, and the rows of a chunk are few. */
export const CHUNK_BYTES = 64 * 1024;

/** @param start the first bytes of a file. */
export function isGzip(start: Buffer): boolean {
  return start.length >= 2 && start.readUInt16BE() === 0x1f8b;
}

/**
 * Decompresses gzip, also of several members.
 * @throws {DatasetError} if it is damaged, truncated, or followed by something else than zeros.
 */
export async function* gunzip(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decompressed = createGunzip({ chunkSize: CHUNK_BYTES });
  // The reader gets errors below. After the end of the text, which Node 24 reports earlier, nobody else would listen.
  decompressed.on('error', () => undefined);
  const feeding = feed(decompressed, source);
  feeding.catch((error: unknown) => decompressed.destroy(error as Error));
  try {
    yield* decompressed as AsyncIterable<Buffer>;
    // Only now: after an error of zlib it never ends, as the callback of the last write is not called.
    await feeding;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!code?.startsWith('Z_')) throw error;
    throw new DatasetError(`the gzip is cut off or damaged: ${message}`, { cause: error });
  }
}

async function feed(decompressed: Gunzip, source: AsyncIterable<Buffer>): Promise<void> {
  let fed = 0;
  for await (const chunk of source) {
    const isOver = decompressed.bytesWritten < fed;
    fed += chunk.length;
    if (!isOver) await written(decompressed, chunk);
    // After the last member, zlib accepts zeros as padding, and silently ignores everything after the first zero, even
    // further members.
    const unread = Math.min(fed - decompressed.bytesWritten, chunk.length);
    if (chunk.subarray(chunk.length - unread).some((byte) => byte !== 0)) {
      throw new DatasetError('the gzip is cut off or damaged: its end is followed by other data');
    }
  }
  decompressed.end();
}

function written(stream: Gunzip, chunk: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(chunk, (error) => (error ? reject(error) : resolve()));
  });
}
