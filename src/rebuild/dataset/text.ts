import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { DatasetError } from './dataset-error.js';
import { limitBytes } from './transfer-limits.js';

/** Bytes of text per chunk: the cost of a read is negligible, and the rows of a chunk are few. */
const CHUNK_BYTES = 64 * 1024;
/** Bytes that tell formats apart. */
const START_BYTES = 4;
/** First bytes of gzip files, in hexadecimal. */
const GZIP = /^1f8b/;
/** Those of other formats, and the reason for the operator. UTF-16 may have no byte order mark. */
const OTHER_FORMATS: [start: RegExp, reason: string][] = [
  [/^(504b0304|d0cf11e0)/, 'this is a zip archive or a spreadsheet: save it as CSV, plain or gzip'],
  [/^fd377a58/, 'this is compressed by xz: compress it with gzip'],
  [/^28b52ffd/, 'this is compressed by zstd: compress it with gzip'],
  [/^04224d18/, 'this is compressed by lz4: compress it with gzip'],
  [/^425a683/, 'this is compressed by bzip2: compress it with gzip'],
  [/^(fffe|feff|00|..00)/, 'this is UTF-16 or UTF-32: save it as UTF-8'],
];

/**
 * Reads the text of a dataset file. It is decompressed if its first bytes are those of gzip; names and
 * headers are ignored.
 * @param maxBytes maximum size of the decompressed text: a small gzip may expand to a huge one.
 * @throws {DatasetError} for other formats, damaged or truncated gzip, and text that is too large.
 */
export async function* readText(file: FileHandle, maxBytes: number): AsyncGenerator<Buffer> {
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(START_BYTES), position: 0 });
  const start = buffer.subarray(0, bytesRead);
  if (isGzip(start)) yield* limitBytes(maxBytes, gunzip(file));
  else {
    assertText(start);
    yield* chunksOf(file);
  }
}

function isGzip(start: Buffer): boolean {
  return GZIP.test(start.toString('hex', 0, START_BYTES));
}

/** @throws {DatasetError} if text begins with the first bytes of another format. */
function assertText(start: Buffer): void {
  const bytes = start.toString('hex', 0, START_BYTES);
  const [, reason] = OTHER_FORMATS.find(([format]) => format.test(bytes)) ?? [];
  if (reason !== undefined) throw new DatasetError(reason);
}

async function* gunzip(file: FileHandle): AsyncGenerator<Buffer> {
  const compressed = Readable.from(chunksOf(file));
  const decompressed = createGunzip({ chunkSize: CHUNK_BYTES });
  compressed.on('error', (error) => decompressed.destroy(error)).pipe(decompressed);
  let isFirst = true;
  try {
    for await (const chunk of decompressed as AsyncIterable<Buffer>) {
      if (isFirst) {
        if (isGzip(chunk)) throw new DatasetError('the gzip contains another gzip: compress the CSV once');
        assertText(chunk);
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
