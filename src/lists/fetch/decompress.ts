import { ReadableStream } from 'node:stream/web';
import { createGunzip, type Gunzip } from 'node:zlib';
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

/**
 * Beginnings of small texts that stand for a file whose content is elsewhere. Git LFS had other names before. An
 * annexed file is a link into `.git/annex/objects`, or a text like it.
 */
const POINTERS: [start: RegExp, reason: string][] = [
  [
    /^\s*(version https?:\/\/(git-lfs\.github\.com|hawser\.github\.com|git-media\.io)\/|# (git-media|external)\s+[\da-f]{40,64}\s*$)/,
    'this is a pointer of Git LFS, not the file itself: run `git lfs pull`',
  ],
  [
    /^\s*(\S*\.git\S*)?[/\\]annex[/\\]objects[/\\]/,
    'this is a pointer of git-annex, not the file itself: run `git annex get`',
  ],
];

/**
 * Decompresses gzip and xz, recognised by their first bytes; anything else is passed on.
 * @throws {DatasetError} if the source is damaged, truncated, compressed twice, in one of `OTHER_FORMATS`, or one of
 * `POINTERS`.
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
  const text = start.toString('latin1', 0, START_BYTES);
  const found =
    OTHER_FORMATS.find(([format]) => format.test(bytes)) ?? POINTERS.find(([one]) => one.test(text));
  const [, reason] = found ?? [];
  if (reason !== undefined) throw new DatasetError(reason);
}

/**
 * Decompresses gzip with one or more members.
 * @throws {DatasetError} if the gzip is damaged, truncated, or followed by anything but zeros.
 */
export async function* gunzip(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decompressed = createGunzip({ chunkSize: CHUNK_BYTES });
  // `yield*` below throws errors. After the end of the text, errors have no other listener than this.
  decompressed.on('error', () => undefined);
  const feeding = feed(decompressed, source);
  feeding.catch((error: unknown) => decompressed.destroy(error as Error));
  try {
    yield* decompressed as AsyncIterable<Buffer>;
    // Awaited last: after an error of zlib, `feeding` never ends, because the callback of the last write is not called.
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
    if (!isOver)
      await new Promise<void>((resolve, reject) => {
        decompressed.write(chunk, (error) => (error ? reject(error) : resolve()));
      });
    // After the last member, zlib accepts zeros as padding, and silently ignores everything after the first zero, even
    // further members.
    const unread = Math.min(fed - decompressed.bytesWritten, chunk.length);
    if (chunk.subarray(chunk.length - unread).some((byte) => byte !== 0)) {
      throw new DatasetError('the gzip is cut off or damaged: its end is followed by other data');
    }
  }
  decompressed.end();
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
