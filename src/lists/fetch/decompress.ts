import { pipeline } from 'node:stream';
import { ReadableStream } from 'node:stream/web';
import { createGunzip } from 'node:zlib';
import { DatasetError } from './dataset-error.js';

/**
 * Bytes of text per chunk: enough to make the cost of a read negligible, and few enough to hold the packages of a chunk
 * in memory.
 */
export const CHUNK_BYTES = 64 * 1024;

/** The first bytes of an xz file. */
const XZ = Buffer.from('fd377a585a00', 'hex');
/**
 * Number of bytes at the beginning of a document that are searched to recognise its format. White space may come first.
 */
const START_BYTES = 1024;
/**
 * First bytes of other formats, in hexadecimal, and the reason for the operator. UTF-16 is also recognised without a
 * byte order mark.
 */
const OTHER_FORMATS: [start: RegExp, reason: string][] = [
  [/^(504b0304|d0cf11e0)/, 'this is a zip archive or a spreadsheet: save it as CSV, plain or gzip'],
  [/^(28b52ffd|04224d18|425a683)/, 'this is compressed by zstd, lz4 or bzip2: compress it with gzip'],
  [/^(fffe|feff|(?!00000000)(00|..00))/, 'this is UTF-16 or UTF-32: save it as UTF-8'],
];

/** The beginning of a small text that stands for a file in the storage of Git LFS. */
const LFS_POINTER = /^version https:\/\/git-lfs\.github\.com\//;

/**
 * Decompresses gzip and xz, recognised by their first bytes; anything else is passed on.
 * @throws {DatasetError} if the source is damaged, truncated, compressed twice, in one of `OTHER_FORMATS`, or a pointer
 * of Git LFS.
 */
export async function* decompress(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const { start, chunks } = await peek(source);
  const text = isGzip(start) ? gunzip(chunks) : isXz(start) ? unxz(chunks) : undefined;
  if (text === undefined) {
    assertReadable(start);
    yield* chunks;
    return;
  }
  const inner = await peek(text);
  if (isGzip(inner.start) || isXz(inner.start)) throw new DatasetError('the document is compressed twice');
  assertReadable(inner.start);
  yield* inner.chunks;
}

/** At least the first KiB of a source (less only if the source is shorter), and the whole source. */
export async function peek(
  source: AsyncIterable<Buffer>,
): Promise<{ start: Buffer; chunks: AsyncIterable<Buffer> }> {
  const iterator = source[Symbol.asyncIterator]();
  let start: Buffer = Buffer.alloc(0);
  while (start.length < START_BYTES) {
    const next = await iterator.next();
    if (next.done === true) break;
    start = start.length === 0 ? next.value : Buffer.concat([start, next.value]);
  }
  async function* chunks() {
    if (start.length > 0) yield start;
    yield* { [Symbol.asyncIterator]: () => iterator };
  }
  return { start, chunks: chunks() };
}

/** @param start the first bytes of a document. */
export function isGzip(start: Buffer): boolean {
  return start.length >= 2 && start.readUInt16BE() === 0x1f8b;
}

function isXz(start: Buffer): boolean {
  return start.subarray(0, XZ.length).equals(XZ);
}

function assertReadable(start: Buffer): void {
  const bytes = start.toString('hex', 0, 8);
  const [, reason] = OTHER_FORMATS.find(([format]) => format.test(bytes)) ?? [];
  if (reason !== undefined) throw new DatasetError(reason);
  if (LFS_POINTER.test(start.toString('latin1')))
    throw new DatasetError('this is a pointer of Git LFS, not the file itself: run `git lfs pull`');
}

/**
 * Decompresses gzip with one or more members. Like gzip itself, Node ignores everything after zeros at the end.
 * @throws {DatasetError} if the gzip is damaged or truncated.
 */
export async function* gunzip(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decompressed = createGunzip({ chunkSize: CHUNK_BYTES });
  // Errors of the source and of zlib are thrown below.
  pipeline(source, decompressed, () => undefined);
  try {
    yield* decompressed as AsyncIterable<Buffer>;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!code?.startsWith('Z_')) throw error;
    throw new DatasetError(`the gzip is cut off or damaged: ${message}`, { cause: error });
  }
}

async function* unxz(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  // The package is CommonJS: Node has its exports only in `default`, and tsx has them at the top level.
  const xz = await import('xz-decompress');
  const { XzReadableStream } = 'default' in xz ? xz.default : xz;
  try {
    // The package's types use the DOM's streams. If TypeScript loads the DOM's types, they are not compatible with
    // Node's types.
    const stream: unknown = ReadableStream.from(source);
    const text = new XzReadableStream(stream as ConstructorParameters<typeof XzReadableStream>[0]);
    for await (const chunk of text as unknown as AsyncIterable<Uint8Array>) yield Buffer.from(chunk);
  } catch (error) {
    if (error instanceof DatasetError) throw error;
    const reason = `the xz is cut off, damaged or not supported (\`xz -9\` is): ${(error as Error).message}`;
    throw new DatasetError(reason, { cause: error });
  }
}
