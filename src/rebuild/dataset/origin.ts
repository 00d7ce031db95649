import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { request as requestHttp, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { DatasetError, NotAcceptableError, UnavailableError } from './dataset-error.js';
import { quote } from '../process/reason-text.js';
import { withTimeout, type TransferTimeouts } from './transfer-limits.js';
import { PROJECT_FOLDER } from '../../project-folder.js';

/** Maximum number of redirects: enough for the chains of download sites. */
const MAX_REDIRECTS = 5;
const REDIRECT_STATUSES = [300, 301, 302, 303, 307, 308];

/** Statuses of servers that are overloaded or restarting. */
const TEMPORARY_STATUSES = [408, 429, 500, 502, 503, 504];

/**
 * Addresses of a host that are tried one after the other, IPv6 and IPv4 in turn, within the time for its response. The last one
 * has what others have left.
 */
const ADDRESSES = 3;

/** How far the clock of an origin may be ahead, in milliseconds; a later date counts as unknown. */
const MAX_CLOCK_SKEW_MS = 300_000;
/** The date format of HTTP, after the day of the week. Its two obsolete formats count as unknown. */
const IMF_FIXDATE = /^[A-Z][a-z]{2}, (\d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT)$/;

/**
 * Values of `Content-Encoding` that change the bytes and cannot be read. gzip is recognised by its first bytes, whatever the
 * server says, and some servers send values that change nothing, such as `utf-8` or `aws-chunked`.
 */
const UNREADABLE_ENCODINGS = ['br', 'zstd', 'deflate', 'compress', 'x-compress', 'dcb', 'dcz'];

const { name, version } = JSON.parse(readFileSync(new URL('package.json', PROJECT_FOLDER), 'utf8')) as {
  name: string;
  version: string;
};

/** Some servers reject requests without them. */
const HEADERS = { 'User-Agent': `${name}/${version}`, Accept: '*/*' };

/** Validators of a downloaded dataset, for conditional requests. */
export interface Validators {
  /** SHA-256 of the address, which may contain a secret. */
  origin: string;
  etag?: string | undefined;
  lastModified?: string | undefined;
}

/** A secret for one origin, which no other one may see. */
export interface Authorization {
  /** Such as `https://registry.example`. */
  origin: string;
  /** Value of the header `Authorization`. */
  value: string;
}

/** What is sent in addition to the usual headers. */
export interface HttpOptions {
  known?: Validators | undefined;
  authorization?: Authorization | undefined;
  headers?: OutgoingHttpHeaders | undefined;
}

/** A dataset that is being transferred. */
export interface DatasetOrigin {
  /** The consumer must destroy it, which ends the transfer. */
  body: Readable;
  /** `Last-Modified` of an HTTP response; invalid if it is missing or malformed. */
  lastModified?: Date;
  /** Modification time of a local file. */
  fileTime?: Date;
  /** `Date` of an HTTP response; invalid if it is missing or malformed. */
  date?: Date;
  /** The address that responded, after redirects. */
  address: string;
  /** `Link` of an HTTP response. */
  link?: string | undefined;
  /** Announced size; undefined if the origin sent none, or is a device. */
  bytes: number | undefined;
  /** Undefined if the origin sent none. */
  validators: Validators | undefined;
  /** For a local file, after it was read. @throws {DatasetError} if somebody has written to it meanwhile. */
  assertUnchanged?: () => Promise<void>;
}

/** Opens a local dataset. @throws {DatasetError} unless the path leads to a file. */
export async function openFile(url: string): Promise<DatasetOrigin> {
  const path = fileURLToPath(url);
  // Clients of /rebuild see these messages, so the path is only in the cause, for the log.
  const found = await stat(path).catch((cause: unknown) => {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause;
    throw new DatasetError('there is no file at the path in DATASET_URL or --dataset', { cause });
  });
  if (found.isDirectory()) {
    const cause = new Error(path);
    throw new DatasetError('the path in DATASET_URL or --dataset is a folder: name the file in it', {
      cause,
    });
  }
  // Opening a pipe that has no writer blocks a thread of the process forever.
  if (found.isFIFO()) {
    throw new DatasetError('the path in DATASET_URL or --dataset is a pipe: name a file', {
      cause: new Error(path),
    });
  }
  const file = await open(path);
  const { mtime: fileTime, mtimeMs, size } = await file.stat();
  const body = file.createReadStream({ autoClose: false });
  // The consumer gets the error when it reads; an earlier one must not end the process.
  body.on('error', () => undefined);
  body.on('close', () => void file.close());
  // The file that was opened: another one may have its name by now.
  const assertUnchanged = async () => {
    const now = await file.stat();
    if (now.mtimeMs !== mtimeMs || now.size !== size) {
      throw new DatasetError('the file at the path in DATASET_URL or --dataset changed while it was read');
    }
  };
  return {
    body,
    address: url,
    fileTime,
    bytes: found.isFile() ? size : undefined,
    validators: undefined,
    assertUnchanged,
  };
}

/**
 * Requests a dataset and follows redirects.
 * @returns undefined if the dataset is still the known one.
 * @throws {UnavailableError} if the server is overloaded, or its headers arrive late. @throws {NotAcceptableError}
 * @throws {DatasetError} if the response is not a dataset.
 */
export async function openHttp(
  url: string,
  timeouts: TransferTimeouts,
  { known, authorization, headers }: HttpOptions,
): Promise<DatasetOrigin | undefined> {
  const origin = createHash('sha256').update(url).digest('hex');
  const condition = known?.origin === origin ? conditions(known) : {};
  const { body, address } = await follow(new URL(url), { ...headers, ...condition }, timeouts, authorization);
  try {
    const { statusCode } = body;
    if (statusCode === 304 && Object.keys(condition).length > 0) {
      body.destroy();
      return undefined;
    }
    assertOk(body);
    const { date, etag, 'last-modified': lastModified, 'content-length': length, link } = body.headers;
    assertReadableEncoding(body.headers['content-encoding']);
    return {
      body,
      address: address.href,
      link: typeof link === 'string' ? link : undefined,
      lastModified: parseHttpDate(lastModified),
      date: parseHttpDate(date),
      bytes: length === undefined ? undefined : Number(length),
      validators:
        etag === undefined && lastModified === undefined ? undefined : { origin, etag, lastModified },
    };
  } catch (error) {
    body.destroy();
    throw error;
  }
}

/**
 * Requests `url` and follows redirects, without reading their bodies.
 * @returns the first response that is not a redirect, and its address. @throws {DatasetError} if there are too many.
 */
async function follow(
  url: URL,
  headers: OutgoingHttpHeaders,
  timeouts: TransferTimeouts,
  authorization: Authorization | undefined,
): Promise<{ body: IncomingMessage; address: URL }> {
  let address = url;
  for (let redirects = 0; ; redirects++) {
    const secret = authorization?.origin === address.origin ? { Authorization: authorization.value } : {};
    const response = await get(address, { ...headers, ...secret }, timeouts);
    const { statusCode = 0 } = response;
    const { location } = response.headers;
    const isRedirect = REDIRECT_STATUSES.includes(statusCode) && location !== undefined;
    if (!isRedirect) return { body: response, address };
    response.destroy();
    if (redirects === MAX_REDIRECTS) {
      throw new DatasetError(`the dataset's server redirects more than ${MAX_REDIRECTS} times`);
    }
    const next = URL.canParse(location, address.href) ? new URL(location, address) : undefined;
    if (next === undefined || !/^https?:$/.test(next.protocol)) {
      throw new DatasetError("the dataset's server redirects to something that is not an http(s) address");
    }
    address = next;
  }
}

/**
 * Sends a request on its own connection. Not with undici 7: under backpressure it treats the end of the
 * connection as a failure, even after a complete response, or ends the process with an assertion
 * (nodejs/undici#5360).
 * @returns the response, whose body fails if the connection does.
 */
async function get(
  address: URL,
  headers: OutgoingHttpHeaders,
  { windowMs, signal }: TransferTimeouts,
): Promise<IncomingMessage> {
  const send = address.protocol === 'https:' ? requestHttps : requestHttp;
  const options = {
    headers: { ...HEADERS, ...headers },
    agent: false,
    // Node would give up on each address of a host after 250 ms.
    autoSelectFamilyAttemptTimeout: Math.ceil(windowMs / ADDRESSES),
  };
  const request = send(address, options);
  const responded = new Promise<IncomingMessage>((resolve, reject) => {
    let response: IncomingMessage | undefined;
    request.on('response', (message) => {
      response = message;
      // The consumer gets the error when it reads; an earlier one must not end the process.
      message.on('error', () => undefined);
      resolve(message);
    });
    request.on('error', (error) => {
      response?.destroy(error);
      reject(error);
    });
    request.on('close', () => reject(new Error('the connection was closed without a response')));
  });
  request.end();
  const tooLate = () =>
    new UnavailableError(
      `the dataset could not be downloaded: its server did not respond within ${windowMs / 1000} s`,
    );
  try {
    return await withTimeout(responded, windowMs, signal, tooLate);
  } catch (error) {
    request.destroy();
    throw error;
  }
}

function assertOk({ statusCode = 0, headers }: IncomingMessage): void {
  if (statusCode === 200) return;
  const reason = `the dataset's server responded with ${statusCode} instead of 200`;
  if (TEMPORARY_STATUSES.includes(statusCode)) {
    throw new UnavailableError(reason, retryAfterSeconds(headers['retry-after']));
  }
  throw new (statusCode === 406 ? NotAcceptableError : DatasetError)(reason);
}

/** @param text seconds, or the date of an HTTP header. */
function retryAfterSeconds(text = ''): number | undefined {
  if (/^\d+$/.test(text)) return Number(text);
  const seconds = (parseHttpDate(text).getTime() - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

function conditions({ etag, lastModified }: Validators): Record<string, string> {
  if (etag !== undefined) return { 'if-none-match': etag };
  return lastModified === undefined ? {} : { 'if-modified-since': lastModified };
}

function assertReadableEncoding(encoding = ''): void {
  const codings = encoding.split(',').map((coding) => coding.trim().toLowerCase());
  if (!codings.some((coding) => UNREADABLE_ENCODINGS.includes(coding))) return;
  throw new DatasetError(
    `the dataset's server uses the content encoding ${quote(encoding)}: only gzip is supported`,
  );
}

/**
 * Parses the date of an HTTP header.
 * @returns an invalid date for text in another format, or for a nonexistent date such as 31 February.
 */
export function parseHttpDate(text = ''): Date {
  const [, written] = IMF_FIXDATE.exec(text) ?? [];
  const date = new Date(text);
  return written !== undefined && date.toUTCString().endsWith(written) ? date : new Date(NaN);
}

/**
 * Reads the date in a gzip header: bytes 4 to 7, in seconds since 1970, where 0 means unknown (RFC 1952, section 2.3).
 * @param start at least the first eight bytes of a file.
 * @returns undefined if the file is not gzip.
 */
export function gzipDate(start: Buffer): Date | undefined {
  if (start.length < 8 || start.readUInt16BE() !== 0x1f8b) return undefined;
  return new Date(start.readUInt32LE(4) * 1000);
}

/**
 * Picks the first plausible date: valid, after 1970 (which file systems and servers use for "unknown"), and not in the
 * future, apart from clock skew.
 * @returns never later than now; undefined if no date is plausible.
 */
export function firstPlausibleDate(...dates: (Date | undefined)[]): Date | undefined {
  const now = Date.now();
  const time = dates
    .map((date) => date?.getTime() ?? 0)
    .find((candidate) => candidate > 0 && candidate <= now + MAX_CLOCK_SKEW_MS);
  return time === undefined ? undefined : new Date(Math.min(time, now));
}
