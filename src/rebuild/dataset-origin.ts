import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Agent, interceptors, request } from 'undici';
import { DatasetError } from './dataset-error.js';

const CONNECT_TIMEOUT_MS = 10_000;
/** A server that sends nothing for so long has stalled. */
const IDLE_TIMEOUT_MS = 30_000;
const MAX_REDIRECTIONS = 5;

/** What the origin of a dataset said of it, to ask later whether it has changed. */
export interface Validators {
  /** SHA-256 of the address, which may hold a secret. */
  origin: string;
  etag?: string | undefined;
  lastModified?: string | undefined;
}

/** A dataset that is being transferred. */
export interface DatasetOrigin {
  body: Readable;
  /** When the dataset was taken: `Last-Modified` or the file's own time; now where that is unknown. */
  takenAt: Date;
  /** Announced size; undefined where there is none. */
  bytes: number | undefined;
  /** Undefined where the origin has none. */
  validators: Validators | undefined;
  close: () => Promise<void>;
}

/** Opens a dataset file. @throws {DatasetError} where there is none. */
export async function openFile(url: string): Promise<DatasetOrigin> {
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
export async function openHttp(
  url: string,
  signal: AbortSignal,
  known: Validators | undefined,
): Promise<DatasetOrigin | undefined> {
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
  const date = new Date(lastModified ?? NaN);
  return Number.isNaN(date.getTime()) ? new Date() : date;
}
