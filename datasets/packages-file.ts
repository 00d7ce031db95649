import { readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';
import { firstPlausibleDate, gzipDate, parseHttpDate } from '../src/rebuild/dataset/dates.js';

// CommonJS: `import` finds its exports either under plain Node or under mocha, but not under both.
const { XzReadableStream } = createRequire(import.meta.url)(
  'xz-decompress',
) as typeof import('xz-decompress');

/** Timeout of one download, in milliseconds: the largest index of Debian has 10 MB, which is 17 KB/s. */
const DOWNLOAD_TIMEOUT_MS = 600_000;

/** The first bytes of compressed files. */
const GZIP = Buffer.from('1f8b', 'hex');
const XZ = Buffer.from('fd377a585a00', 'hex');

/** The layout of Debian's archives: `…/dists/<suite>/<component>/binary-<architecture>/Packages.xz`. */
const INDEX_OF_SUITE = /^(.+\/dists\/.+)\/[^/]+\/binary-[^/]+\/[^/]+$/;

/** The bytes of a file or a URL, still compressed. */
export interface LoadedFile {
  /** Path or URL. */
  location: string;
  bytes: Buffer;
  /** `Last-Modified` of an HTTP response; invalid if it is missing or malformed. */
  lastModified?: Date;
  /** Modification time of a local file. */
  fileTime?: Date;
}

/** No file at a path, or HTTP status 404. */
class NotFoundError extends Error {
  override name = 'NotFoundError';
}

/** Whether it is an http(s) URL, not a path. */
export function isUrl(location: string): boolean {
  return /^https?:\/\//i.test(location);
}

/**
 * Reads a local file, or downloads a remote one.
 * @param location path or http(s) URL.
 * @throws {Error} with the location and the reason.
 */
export async function loadFile(location: string): Promise<LoadedFile> {
  try {
    return isUrl(location) ? await download(location) : await readLocal(location);
  } catch (error) {
    const reason = `cannot read ${location}: ${describe(error as Error)}`;
    const isMissing = error instanceof NotFoundError || (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new (isMissing ? NotFoundError : Error)(reason, { cause: error });
  }
}

/**
 * Decompresses gzip and xz, recognised by their first bytes.
 * @returns `bytes` itself if it is neither.
 * @throws {Error} if the file is damaged or cut off.
 */
export async function decompress(bytes: Buffer): Promise<Buffer> {
  try {
    if (startsWith(bytes, GZIP)) return gunzipSync(bytes);
    if (!startsWith(bytes, XZ)) return bytes;
    const text = new XzReadableStream(new Blob([bytes]).stream());
    return Buffer.from(await new Response(text).arrayBuffer());
  } catch (error) {
    throw new Error(`the compressed file is cut off or damaged: ${describe(error as Error)}`, {
      cause: error,
    });
  }
}

/**
 * Determines the date of a `Packages` index: the first plausible date of `Last-Modified`, the `Date` of its suite's
 * `Release` file, the gzip header and the modification time of a local file.
 * @throws {Error} if there is a `Release` file that cannot be read.
 */
export async function sourceDate(file: LoadedFile): Promise<Date | undefined> {
  return (
    firstPlausibleDate(file.lastModified) ??
    firstPlausibleDate(await releaseDate(file.location), gzipDate(file.bytes), file.fileTime)
  );
}

async function releaseDate(location: string): Promise<Date | undefined> {
  const suite = INDEX_OF_SUITE.exec(location)?.[1];
  if (suite === undefined) return undefined;
  try {
    const { bytes } = await loadFile(`${suite}/Release`);
    const [, date] = /^Date: *(.+?) (?:UTC|GMT|\+0000)\s*$/m.exec(bytes.toString()) ?? [];
    return parseHttpDate(`${date} GMT`);
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

async function readLocal(location: string): Promise<LoadedFile> {
  const [bytes, { mtime }] = await Promise.all([readFile(location), stat(location)]);
  return { location, bytes, fileTime: mtime };
}

async function download(location: string): Promise<LoadedFile> {
  const response = await fetch(location, { signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new (response.status === 404 ? NotFoundError : Error)(`HTTP status ${response.status}`);
  }
  const bytes = Buffer.from(await response.arrayBuffer());
  return { location, bytes, lastModified: parseHttpDate(response.headers.get('last-modified') ?? '') };
}

function startsWith(bytes: Buffer, start: Buffer): boolean {
  return bytes.subarray(0, start.length).equals(start);
}

/** The reason is in the cause of the error from `fetch`, which may have a code and no message. */
function describe(error: Error): string {
  const { message, code } = (error.cause ?? error) as NodeJS.ErrnoException;
  return message || (code ?? error.message);
}
