import type { FileHandle } from 'node:fs/promises';
import { DatasetError } from './dataset-error.js';
import { CHUNK_BYTES, gunzip, isGzip } from './gunzip.js';
import { limitBytes } from './transfer-limits.js';

/** Bytes that tell formats apart. */
const START_BYTES = 4;
/** First bytes of other formats, in hexadecimal, and the reason for the operator. UTF-16 may have no byte order mark. */
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
  if (isGzip(start)) yield* limitBytes(maxBytes, assertedText(gunzip(chunksOf(file))));
  else {
    assertText(start);
    yield* chunksOf(file);
  }
}

/** @throws {DatasetError} if text begins with the first bytes of another format. */
function assertText(start: Buffer): void {
  const bytes = start.toString('hex', 0, START_BYTES);
  const [, reason] = OTHER_FORMATS.find(([format]) => format.test(bytes)) ?? [];
  if (reason !== undefined) throw new DatasetError(reason);
}

/** @throws {DatasetError} if it is not text. */
async function* assertedText(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isFirst = true;
  for await (const chunk of source) {
    if (isFirst && isGzip(chunk))
      throw new DatasetError('the gzip contains another gzip: compress the CSV once');
    if (isFirst) assertText(chunk);
    isFirst = false;
    yield chunk;
  }
}

/** Not a stream of Node, because that closes its file when it ends. */
export async function* chunksOf(file: FileHandle): AsyncGenerator<Buffer> {
  for (let position = 0; ;) {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.allocUnsafe(CHUNK_BYTES), position });
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}
