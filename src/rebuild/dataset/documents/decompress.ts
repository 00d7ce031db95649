import { ReadableStream } from 'node:stream/web';
import * as xz from 'xz-decompress';
import { DatasetError } from '../dataset-error.js';
import { gunzip, isGzip } from '../gunzip.js';

/** It is CommonJS, whose exports Node has in `default` only, and tsx has without it. */
const { XzReadableStream } = (xz as typeof xz & { default?: typeof xz }).default ?? xz;

/** The first bytes of an xz file. */
const XZ = Buffer.from('fd377a585a00', 'hex');
/** Failures of its decoder that are no damage, by the values of `xz_ret` in XZ Embedded. A dictionary may have 64 MiB. */
const XZ_FAILURES = new Map([
  ['4', 'the xz needs more than 64 MiB for its dictionary: compress it with `xz -9`, or with gzip'],
  ['6', 'the xz has a filter or a check that is not supported: compress it with `xz -9`, or with gzip'],
]);
/** Bytes that tell compressed files apart. */
const START_BYTES = XZ.length;

/**
 * Decompresses gzip and xz, recognised by their first bytes; anything else is passed on.
 * @throws {DatasetError} if it is damaged or truncated, or compressed twice.
 */
export async function* decompress(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const { start, chunks } = await peek(source, START_BYTES);
  if (isGzip(start)) yield* compressedOnce(gunzip(chunks));
  else if (isXz(start)) yield* compressedOnce(unxz(chunks));
  else yield* chunks;
}

/** The first bytes of a source, fewer only if it has fewer, and the whole source. */
export async function peek(
  source: AsyncIterable<Buffer>,
  bytes: number,
): Promise<{ start: Buffer; chunks: AsyncIterable<Buffer> }> {
  const iterator = source[Symbol.asyncIterator]();
  let start: Buffer = Buffer.alloc(0);
  while (start.length < bytes) {
    const next = await iterator.next();
    if (next.done === true) break;
    start = Buffer.concat([start, next.value]);
  }
  async function* chunks() {
    yield start;
    yield* { [Symbol.asyncIterator]: () => iterator };
  }
  return { start, chunks: chunks() };
}

function isXz(start: Buffer): boolean {
  return start.subarray(0, XZ.length).equals(XZ);
}

async function* unxz(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    // Its types are those of browsers, which differ from Node's where both are known.
    const stream: unknown = ReadableStream.from(source);
    const text = new XzReadableStream(stream as ConstructorParameters<typeof XzReadableStream>[0]);
    for await (const chunk of text as unknown as AsyncIterable<Uint8Array>) yield Buffer.from(chunk);
  } catch (error) {
    if (error instanceof DatasetError) throw error;
    const { message } = error as Error;
    const known = XZ_FAILURES.get(/code (\d+)$/.exec(message)?.[1] ?? '');
    throw new DatasetError(known ?? `the xz is cut off or damaged: ${message}`, { cause: error });
  }
}

async function* compressedOnce(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const { start, chunks } = await peek(source, START_BYTES);
  if (isGzip(start) || isXz(start)) throw new DatasetError('the document is compressed twice');
  yield* chunks;
}
