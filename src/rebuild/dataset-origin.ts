import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Agent, request, type Dispatcher } from 'undici';
import { DatasetError } from './dataset-error.js';
import { quote } from './reason.js';
import { waitFor, type Patience } from './transfer-limits.js';

/** Timeout of name resolution, TCP and TLS together, in milliseconds: ample for a busy server. Then the download fails. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Redirects that are followed, as many as download sites chain. A further one fails the download. */
const MAX_REDIRECTS = 5;
const REDIRECT_STATUSES = [300, 301, 302, 303, 307, 308];

/** How far the clock of an origin may be ahead, in milliseconds; a later date counts as unknown. */
const MAX_CLOCK_SKEW_MS = 300_000;
/** The date format that HTTP prescribes, after the day of the week. */
const IMF_FIXDATE = /^[A-Z][a-z]{2}, (\d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT)$/;

/** Values of `Content-Encoding` that can be read: gzip is recognised by its first bytes, whatever the server says. */
const READABLE_ENCODINGS = ['identity', 'gzip', 'x-gzip'];

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
  // Clients of /rebuild see these messages, so the path is in the cause, for the log.
  const found = await stat(path).catch((cause: unknown) => {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause;
    throw new DatasetError('there is no file at the path in DATASET_URL', { cause });
  });
  if (found.isDirectory()) {
    const cause = new Error(path);
    throw new DatasetError('the path in DATASET_URL is a folder: name the file in it', { cause });
  }
  return {
    body: createReadStream(path),
    takenAt: plausible(found.mtime),
    bytes: found.size,
    validators: undefined,
    close: () => Promise.resolve(),
  };
}

/**
 * Requests a dataset and follows redirects.
 * @returns undefined where the dataset is the known one.
 * @throws {DatasetError} where the response is not a dataset, or its headers are late.
 */
export async function openHttp(
  url: string,
  patience: Patience,
  known: Validators | undefined,
): Promise<DatasetOrigin | undefined> {
  // Waiting is limited by `patience` alone, whose timeouts trickled bytes do not extend.
  const agent = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS }, headersTimeout: 0, bodyTimeout: 0 });
  const origin = createHash('sha256').update(url).digest('hex');
  const condition = known?.origin === origin ? conditions(known) : {};
  try {
    const { statusCode, headers, body } = await follow(url, agent, condition, patience);
    if (statusCode === 304 && Object.keys(condition).length > 0) {
      await agent.destroy();
      return undefined;
    }
    if (statusCode !== 200) {
      throw new DatasetError(`the dataset's server answered ${statusCode} instead of 200`);
    }
    requireReadable(single(headers['content-encoding']));
    const etag = single(headers['etag']);
    const lastModified = single(headers['last-modified']);
    const length = single(headers['content-length']);
    return {
      body,
      takenAt: plausible(parseHttpDate(lastModified)),
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

/**
 * Requests `url` and follows redirects without reading their bodies, which undici's redirect interceptor would do to
 * their end.
 * @returns the first response that is not a redirect, or the one after `MAX_REDIRECTS`.
 */
async function follow(
  url: string,
  dispatcher: Agent,
  headers: Record<string, string>,
  { windowMs, signal }: Patience,
): Promise<Dispatcher.ResponseData> {
  const tooLate = () =>
    new DatasetError(
      `the dataset could not be downloaded: its server did not respond within ${windowMs / 1000} s`,
    );
  let address = url;
  for (let redirects = 0; ; redirects++) {
    const response = await waitFor(
      request(address, { dispatcher, headers, signal }),
      windowMs,
      signal,
      tooLate,
    );
    const location = single(response.headers['location']);
    const isRedirect = REDIRECT_STATUSES.includes(response.statusCode) && location !== undefined;
    if (!isRedirect || redirects === MAX_REDIRECTS) return response;
    // It emits an error when it is destroyed before its end.
    response.body.on('error', () => undefined).destroy();
    if (!URL.canParse(location, address)) {
      throw new DatasetError("the dataset's server redirects to something that is not an address");
    }
    address = new URL(location, address).href;
  }
}

function conditions({ etag, lastModified }: Validators): Record<string, string> {
  if (etag !== undefined) return { 'if-none-match': etag };
  return lastModified === undefined ? {} : { 'if-modified-since': lastModified };
}

function requireReadable(encoding = 'identity'): void {
  if (READABLE_ENCODINGS.includes(encoding.trim().toLowerCase())) return;
  throw new DatasetError(
    `the dataset's server sent it with the content encoding ${quote(encoding)}: only gzip can be read`,
  );
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** @returns an invalid date for text that is no date or one that does not exist, such as 31 February. */
function parseHttpDate(text = ''): Date {
  const date = new Date(text);
  const [, written] = IMF_FIXDATE.exec(text) ?? [];
  const exists = written === undefined || date.toUTCString().endsWith(written);
  return exists ? date : new Date(NaN);
}

/**
 * The date itself, or now where it is invalid, in the future, or not after 1970, which file systems and servers use for
 * "unknown". Never later than now.
 */
function plausible(date: Date): Date {
  const now = Date.now();
  const time = date.getTime();
  const isPlausible = time > 0 && time <= now + MAX_CLOCK_SKEW_MS;
  return new Date(isPlausible ? Math.min(time, now) : now);
}
