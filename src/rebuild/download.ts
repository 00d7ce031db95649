import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, open, readdir, rm, stat, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createGunzip } from 'node:zlib';
import { Agent, interceptors, request } from 'undici';
import { DatasetError } from './dataset-error.js';

const CONNECT_TIMEOUT_MS = 10_000;
/** A server that sends nothing for so long has stalled. */
const IDLE_TIMEOUT_MS = 30_000;
const MAX_REDIRECTIONS = 5;
/** How far the clock of a dataset's server may be ahead, in milliseconds; a later date counts as unknown. */
const MAX_CLOCK_SKEW_MS = 300_000;
/** Of the file as it comes, and of its text: forty times a registry of 4,000,000 names. */
const MAX_BYTES = 16 * 2 ** 30;
/**
 * How much of the text is read at a time, in bytes. What is made of it occupies this process for some milliseconds,
 * in which it answers nobody.
 */
const READ_BYTES = 16 * 1024;
/** The first bytes of such files. */
const GZIP = 0x1f8b;
const ZIP = 0x504b0304;
/** The folders of temporary files begin with it; the number of their process and the time of its start follow. */
const FOLDER = 'package-registry-search-snapshot-';
const OWN = `${FOLDER}${process.pid}-${Math.floor(performance.timeOrigin)}-`;

/** What is left to others of the room for temporary files. */
const ROOM_FOR_OTHERS = 64 * 2 ** 20;

/** What the origin of a dataset said of it, to ask later whether it has changed. */
export interface Validators {
  /** SHA-256 of the address, which may hold a secret. */
  origin: string;
  etag?: string | undefined;
  lastModified?: string | undefined;
}

/** A dataset as it came, in a temporary file of this build's own. */
export interface Snapshot {
  /** When it was taken: `Last-Modified` of the download or the file's own time; the time of the download without one. */
  takenAt: Date;
  /** SHA-256 in hexadecimal. */
  digest: string;
  /** Undefined where the origin says nothing. */
  validators: Validators | undefined;
  /** The text from its beginning, decompressed where the file is gzip. Can be read more than once. */
  read(): Promise<Readable>;
  /** Removes the temporary file. */
  remove(): Promise<void>;
}

interface DownloadOptions {
  /** Of the dataset that is served: nothing is fetched where it is the same. */
  known?: Validators | undefined;
  /** Of the file as it comes, and of its text. */
  maxBytes?: number;
}

/**
 * Fetches a dataset into a temporary file.
 * @param url `http(s)://…` or `file:…`, plain or gzip.
 * @returns undefined where the origin says that it has not changed since it was known.
 * @throws {DatasetError} that says why it cannot be had; nothing is left behind.
 */
export async function download(
  url: string,
  signal: AbortSignal,
  { known, maxBytes = MAX_BYTES }: DownloadOptions = {},
): Promise<Snapshot | undefined> {
  await removeOrphans();
  const folder = await mkdtemp(join(tmpdir(), OWN));
  const remove = () => rm(folder, { recursive: true, force: true });
  const path = join(folder, 'snapshot');
  try {
    const origin = url.startsWith('file:') ? await openFile(url) : await openHttp(url, signal, known);
    if (origin === undefined) {
      await remove();
      return undefined;
    }
    const hash = createHash('sha256');
    try {
      await requireRoom(folder, origin.bytes);
      const passed = capped(maxBytes, (chunk) => hash.update(chunk));
      await pipeline(origin.body, passed, createWriteStream(path), { signal });
    } finally {
      // It says so where it is left before its end.
      origin.body.on('error', () => undefined).destroy();
      await origin.close();
    }
    return {
      takenAt: origin.takenAt,
      digest: hash.digest('hex'),
      validators: origin.validators,
      read: () => openText(path, maxBytes),
      remove,
    };
  } catch (error) {
    await remove();
    if (error instanceof DatasetError || signal.aborted) throw error;
    throw new DatasetError(`the dataset could not be downloaded: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/**
 * Removes the temporary files of processes that were killed. One of them may have had this process's number: in a
 * container it is always the same.
 */
async function removeOrphans(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = name.startsWith(FOLDER) ? parseInt(name.slice(FOLDER.length), 10) : NaN;
    const inUse = pid === process.pid ? name.startsWith(OWN) : isAlive(pid);
    if (Number.isNaN(pid) || inUse) continue;
    await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It may be another user's.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Beforehand, so that a download does not fill the disk of others before it fails. */
async function requireRoom(folder: string, bytes: number | undefined): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const room = bavail * bsize - ROOM_FOR_OTHERS;
  if ((bytes ?? 0) <= room) return;
  throw new DatasetError(
    `the dataset has ${bytes} bytes, and there is room for ${Math.max(0, room)} in the folder of temporary files`,
  );
}

interface Origin {
  body: Readable;
  takenAt: Date;
  /** As far as is known beforehand. */
  bytes: number | undefined;
  validators: Validators | undefined;
  close: () => Promise<void>;
}

async function openFile(url: string): Promise<Origin> {
  const path = fileURLToPath(url);
  const found = await stat(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  });
  if (found === undefined) throw new DatasetError(`there is no file ${path}`);
  if (found.isDirectory()) throw new DatasetError(`${path} is a folder: name the file in it`);
  return {
    body: createReadStream(path),
    takenAt: found.mtime,
    bytes: found.size,
    validators: undefined,
    close: () => Promise.resolve(),
  };
}

/** @returns undefined where the dataset is the known one. */
async function openHttp(
  url: string,
  signal: AbortSignal,
  known: Validators | undefined,
): Promise<Origin | undefined> {
  const agent = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: IDLE_TIMEOUT_MS,
    bodyTimeout: IDLE_TIMEOUT_MS,
  });
  const dispatcher = agent.compose(interceptors.redirect({ maxRedirections: MAX_REDIRECTIONS }));
  const origin = createHash('sha256').update(url).digest('hex');
  const condition = known?.origin === origin ? conditions(known) : {};
  try {
    const { statusCode, headers, body } = await request(url, { dispatcher, signal, headers: condition });
    if (statusCode === 304 && Object.keys(condition).length > 0) {
      await agent.destroy();
      return undefined;
    }
    if (statusCode !== 200) {
      throw new DatasetError(`the dataset's server answered ${statusCode} instead of 200`);
    }
    const etag = single(headers['etag']);
    const lastModified = single(headers['last-modified']);
    const length = single(headers['content-length']);
    return {
      body,
      takenAt: takenAt(lastModified),
      bytes: length === undefined ? undefined : Number(length),
      validators:
        etag === undefined && lastModified === undefined ? undefined : { origin, etag, lastModified },
      close: () => agent.destroy(),
    };
  } catch (error) {
    await agent.destroy();
    throw error;
  }
}

function conditions({ etag, lastModified }: Validators): Record<string, string> {
  if (etag !== undefined) return { 'if-none-match': etag };
  return lastModified === undefined ? {} : { 'if-modified-since': lastModified };
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function takenAt(lastModified: string | undefined): Date {
  const now = new Date();
  const date = new Date(lastModified ?? NaN);
  // A date in the future is as wrong as none; a clock that is a little fast is not.
  const plausible = date.getTime() > 0 && date.getTime() <= now.getTime() + MAX_CLOCK_SKEW_MS;
  return plausible ? date : now;
}

/** Passes bytes on, shows them to `see`, and fails beyond `maxBytes`. */
function capped(maxBytes: number, see: (chunk: Buffer) => unknown = () => undefined): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        done(new DatasetError(`the dataset is larger than ${maxBytes} bytes`));
        return;
      }
      see(chunk);
      done(null, chunk);
    },
  });
}

/** What it is is told by its first bytes, whatever the file or the server calls itself. */
async function openText(path: string, maxBytes: number): Promise<Readable> {
  const handle = await open(path);
  const { buffer } = await handle.read({ buffer: Buffer.alloc(4), length: 4, position: 0 });
  await handle.close();
  if (buffer.readUInt32BE() === ZIP)
    throw new DatasetError('this is a zip archive or a spreadsheet: save it as CSV, plain or gzip');
  const file = createReadStream(path, { highWaterMark: READ_BYTES });
  if (buffer.readUInt16BE() !== GZIP) return file;
  const gunzip = createGunzip({ chunkSize: READ_BYTES });
  // A little gzip may be a lot of text.
  const text = capped(maxBytes);
  file.on('error', (error) => text.destroy(error)).pipe(gunzip);
  gunzip
    .on('error', (error) => {
      text.destroy(new DatasetError(`the gzip is cut off or damaged: ${error.message}`, { cause: error }));
    })
    .pipe(text)
    .on('close', () => {
      file.destroy();
      gunzip.destroy();
    });
  return text;
}
