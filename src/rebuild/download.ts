import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Transform, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createGunzip } from 'node:zlib';
import { Agent, interceptors, request, type Dispatcher } from 'undici';
import { DatasetError } from './dataset-error.js';

const CONNECT_TIMEOUT_MS = 10_000;
/** A server that sends nothing for so long has stalled. */
const IDLE_TIMEOUT_MS = 30_000;
const MAX_REDIRECTIONS = 5;
/** Of the file as it comes: forty times a registry of 4,000,000 names. */
const MAX_BYTES = 16 * 2 ** 30;

/** A dataset as it came, in a temporary file of this build's own. */
export interface Snapshot {
  /** When it was taken: `Last-Modified` of the download or the file's own time; the time of the download without one. */
  takenAt: Date;
  /** SHA-256 in hexadecimal. */
  digest: string;
  /** The text from its beginning, decompressed where the file is gzip. Can be read more than once. */
  read(): Promise<Readable>;
  /** Removes the temporary file. */
  remove(): Promise<void>;
}

/**
 * Fetches a dataset into a temporary file.
 * @param url `http(s)://…` or `file:…`, plain or gzip.
 * @throws {DatasetError} that says why it cannot be had; nothing is left behind.
 */
export async function download(url: string, signal: AbortSignal): Promise<Snapshot> {
  const folder = await mkdtemp(join(tmpdir(), 'package-registry-search-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  const path = join(folder, 'snapshot');
  try {
    const origin = url.startsWith('file:') ? await openFile(url) : await openHttp(url, signal);
    const hash = createHash('sha256');
    await pipeline(
      origin.body,
      measured((chunk) => hash.update(chunk)),
      createWriteStream(path),
      {
        signal,
      },
    ).finally(origin.close);
    return { takenAt: origin.takenAt, digest: hash.digest('hex'), read: () => openText(path), remove };
  } catch (error) {
    await remove();
    if (error instanceof DatasetError || signal.aborted) throw error;
    throw new DatasetError(`the dataset could not be downloaded: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

interface Origin {
  body: Readable;
  takenAt: Date;
  close: () => Promise<void>;
}

async function openFile(url: string): Promise<Origin> {
  const path = fileURLToPath(url);
  const { mtime } = await stat(path);
  return { body: createReadStream(path), takenAt: mtime, close: () => Promise.resolve() };
}

async function openHttp(url: string, signal: AbortSignal): Promise<Origin> {
  const agent = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: IDLE_TIMEOUT_MS,
    bodyTimeout: IDLE_TIMEOUT_MS,
  });
  const dispatcher = agent.compose(interceptors.redirect({ maxRedirections: MAX_REDIRECTIONS }));
  try {
    const answer = await request(url, { dispatcher, signal });
    if (answer.statusCode !== 200) {
      throw new DatasetError(`the dataset's server answered ${answer.statusCode} instead of 200`);
    }
    return { body: answer.body, takenAt: lastModified(answer.headers), close: () => agent.destroy() };
  } catch (error) {
    await agent.destroy();
    throw error;
  }
}

function lastModified(headers: Dispatcher.ResponseData['headers']): Date {
  const date = new Date(String(headers['last-modified']));
  return Number.isNaN(date.getTime()) ? new Date() : date;
}

/** Passes bytes on, shows them to `see`, and fails beyond `MAX_BYTES`. */
function measured(see: (chunk: Buffer) => unknown): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) {
        done(new DatasetError(`the dataset is larger than ${MAX_BYTES} bytes`));
        return;
      }
      see(chunk);
      done(null, chunk);
    },
  });
}

/** Gzip is told by its magic bytes, whatever the file or the server calls itself. */
async function openText(path: string): Promise<Readable> {
  const handle = await open(path);
  const { buffer } = await handle.read({ buffer: Buffer.alloc(2), length: 2, position: 0 });
  await handle.close();
  const file = createReadStream(path, { highWaterMark: 256 * 1024 });
  if (buffer.readUInt16BE() !== 0x1f8b) return file;
  const text = createGunzip({ chunkSize: 256 * 1024 });
  pipeline(file, text).catch((error: unknown) => text.destroy(error as Error));
  return text;
}
