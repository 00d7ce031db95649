import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { DatasetError } from './dataset-error.js';
import { limitBytes } from './transfer-limits.js';

/** Bytes of text per chunk. Parsing and indexing one chunk blocks the event loop for some milliseconds. */
const CHUNK_BYTES = 16 * 1024;
/** First bytes of gzip files. */
const GZIP = 0x1f8b;
/** First bytes of files in other formats, in hexadecimal, and the reason for the operator. */
const OTHER_FORMATS: [start: string, reason: string][] = [
  ['504b0304', 'this is a zip archive or a spreadsheet: save it as CSV, plain or gzip'],
  ['fd377a58', 'this is compressed by xz: compress it with gzip'],
  ['28b52ffd', 'this is compressed by zstd: compress it with gzip'],
  ['425a68', 'this is compressed by bzip2: compress it with gzip'],
  ['fffe', 'this is UTF-16: save it as UTF-8'],
  ['feff', 'this is UTF-16: save it as UTF-8'],
];

/**
 * Reads the text of a dataset file. It is decompressed if its first bytes are those of gzip; names and
 * headers are ignored.
 * @param maxBytes maximum size of the decompressed text: a small gzip may expand to a huge one.
 * @throws {DatasetError} for other formats, damaged or truncated gzip, and text that is too large.
 */
export async function* readText(file: FileHandle, maxBytes: number): AsyncGenerator<Buffer> {
  const { buffer: start } = await file.read({ buffer: Buffer.alloc(4), position: 0 });
  const other = OTHER_FORMATS.find(([bytes]) => start.toString('hex').startsWith(bytes));
  if (other !== undefined) throw new DatasetError(other[1]);
  const isGzip = start.readUInt16BE() === GZIP;
  yield* isGzip ? limitBytes(maxBytes, gunzip(file)) : chunksOf(file);
}

async function* gunzip(file: FileHandle): AsyncGenerator<Buffer> {
  const compressed = Readable.from(chunksOf(file));
  const decompressed = createGunzip({ chunkSize: CHUNK_BYTES });
  compressed.on('error', (error) => decompressed.destroy(error)).pipe(decompressed);
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
    compressed.destroy();
  }
  await assertOnlyPadding(file, decompressed.bytesWritten);
}

/**
 * After the last member, zlib accepts zeros as padding, and silently ignores everything after the first zero,
 * even further members.
 * @param from the end of the last member.
 */
async function assertOnlyPadding(file: FileHandle, from: number): Promise<void> {
  for await (const chunk of chunksOf(file, from)) {
    if (chunk.some((byte) => byte !== 0)) {
      throw new DatasetError('the gzip is cut off or damaged: its end is followed by other data');
    }
  }
}

/** Not a stream of Node, because that closes its file when it ends. */
async function* chunksOf(file: FileHandle, start = 0): AsyncGenerator<Buffer> {
  for (let position = start; ;) {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.allocUnsafe(CHUNK_BYTES), position });
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}
