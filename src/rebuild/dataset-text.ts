import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { DatasetError } from './dataset-error.js';
import { limitBytes } from './transfer-limits.js';

/** Bytes of text per chunk. Parsing and indexing one chunk blocks the event loop for some milliseconds. */
const CHUNK_BYTES = 16 * 1024;
/** First bytes of gzip and zip files. */
const GZIP = 0x1f8b;
const ZIP = 0x504b0304;

/**
 * Reads the text of a dataset file. It is decompressed if its first bytes are those of gzip; names and
 * headers are ignored.
 * @param maxBytes maximum size of the decompressed text: a small gzip may expand to a huge one.
 * @throws {DatasetError} for other formats, damaged or truncated gzip, and text that is too large.
 */
export async function* readText(path: string, maxBytes: number): AsyncGenerator<Buffer> {
  const start = (await readAt(path, 0, 4)).readUInt32BE();
  if (start === ZIP) {
    throw new DatasetError('this is a zip archive or a spreadsheet: save it as CSV, plain or gzip');
  }
  const isGzip = start >>> 16 === GZIP;
  yield* isGzip ? limitBytes(maxBytes, gunzip(path)) : createReadStream(path, { highWaterMark: CHUNK_BYTES });
}

async function* gunzip(path: string): AsyncGenerator<Buffer> {
  const file = createReadStream(path, { highWaterMark: CHUNK_BYTES });
  const decompressed = createGunzip({ chunkSize: CHUNK_BYTES });
  file.on('error', (error) => decompressed.destroy(error)).pipe(decompressed);
  let isFirst = true;
  try {
    for await (const chunk of decompressed as AsyncIterable<Buffer>) {
      if (isFirst && chunk.length > 1 && chunk.readUInt16BE() === GZIP) {
        throw new DatasetError('the gzip contains another gzip: compress the CSV once');
      }
      isFirst = false;
      yield chunk;
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!code?.startsWith('Z_')) throw error;
    throw new DatasetError(`the gzip is cut off or damaged: ${message}`, { cause: error });
  } finally {
    file.destroy();
  }
  await assertOnlyPadding(path, decompressed.bytesWritten);
}

/**
 * After the last member, zlib accepts zeros as padding, and silently ignores everything after the first zero,
 * even further members.
 * @param from the end of the last member.
 */
async function assertOnlyPadding(path: string, from: number): Promise<void> {
  for await (const chunk of createReadStream(path, { start: from }) as AsyncIterable<Buffer>) {
    if (chunk.some((byte) => byte !== 0)) {
      throw new DatasetError('the gzip is cut off or damaged: its end is followed by other data');
    }
  }
}

/** Bytes beyond the end of the file are zero. */
async function readAt(path: string, position: number, length: number): Promise<Buffer> {
  const handle = await open(path);
  try {
    return (await handle.read({ buffer: Buffer.alloc(length), length, position })).buffer;
  } finally {
    await handle.close();
  }
}
