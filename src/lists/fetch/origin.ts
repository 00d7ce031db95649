import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { DatasetError, OriginUnavailableError } from './dataset-error.js';
import { requestWithRedirects, type Authorization, type Transfer } from './http-request.js';
import type { Validators } from '../../snapshot/snapshot-meta.js';
import { parseHttpDate, retryAfterSeconds, UNAVAILABLE_STATUSES } from '../../util/http-response.js';

/** Statuses of servers that are overloaded or restarting. */
const TEMPORARY_STATUSES = [408, 429, 500, ...UNAVAILABLE_STATUSES];

/** Additional headers of a request. */
export interface HttpOptions {
  /** Validators of the document that the newest snapshot was built from. */
  known?: Validators | undefined;
  authorization?: Authorization | undefined;
  /** The addresses of the list, whose credentials are kept in redirects. */
  configured?: readonly string[] | undefined;
  headers?: OutgoingHttpHeaders | undefined;
}

/** A document that is being transferred: a dataset, a part of a dataset, or the weights. */
export interface DocumentOrigin {
  /** The consumer must destroy it, which ends the transfer. */
  body: Readable;
  /** `Last-Modified` of an HTTP response; invalid if it is missing or malformed. */
  lastModified?: Date;
  /** Modification time of a local file, or `Date` of an HTTP response; invalid if it is missing or malformed. */
  date: Date;
  /** The address that responded, after redirects. */
  address: string;
  /** `Link` of an HTTP response. */
  link?: string | undefined;
  /** Announced size; undefined if the origin sent none. */
  bytes: number | undefined;
  /** Undefined if the origin sent none. */
  validators?: Validators | undefined;
  /** Called after a local file was read. @throws {DatasetError} if the file was changed meanwhile. */
  assertUnchanged?: () => Promise<void>;
}

/**
 * Opens a local document.
 * @param what name of the document, for messages.
 * @throws {DatasetError} if there is no regular file at the path.
 */
export async function openFile(url: string, what = 'the dataset'): Promise<DocumentOrigin> {
  const path = fileURLToPath(url);
  // Clients of /rebuild see these messages, so the path is only in the cause, for the log.
  const found = await stat(path).catch((cause: unknown) => {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause;
    throw new DatasetError(`there is no file at the path of ${what}`, { cause });
  });
  // Opening a pipe that has no writer blocks a thread of the process forever.
  if (!found.isFile())
    throw new DatasetError(`the path of ${what} is not a file`, { cause: new Error(path) });
  const file = await open(path);
  const { mtime: date, mtimeMs, size } = await file.stat();
  const body = file.createReadStream({ autoClose: false });
  // The consumer gets the error when it reads. Until then, the error must not end the process.
  body.on('error', () => undefined);
  body.on('close', () => void file.close());
  // Checks the opened file: another file may have its name by now.
  const assertUnchanged = async () => {
    const now = await file.stat();
    if (now.mtimeMs !== mtimeMs || now.size !== size) {
      throw new DatasetError(`the file at the path of ${what} changed while it was read`);
    }
  };
  return { body, address: url, date, bytes: size, assertUnchanged };
}

/**
 * Requests a document and follows redirects.
 * @returns undefined if the document has not changed.
 * @throws {OriginUnavailableError} if the server is overloaded or restarting, or its headers do not arrive in time.
 * @throws {DatasetError} if the status is not 200.
 */
export async function openHttp(
  url: string,
  transfer: Transfer,
  { known, authorization, configured = [], headers }: HttpOptions,
): Promise<DocumentOrigin | undefined> {
  const origin = createHash('sha256').update(url).digest('hex');
  const condition = known?.origin === origin ? conditions(known) : {};
  const { body, address } = await requestWithRedirects(
    new URL(url),
    { ...headers, ...condition },
    transfer,
    authorization,
    configured,
  );
  try {
    const { statusCode } = body;
    if (statusCode === 304 && Object.keys(condition).length > 0) {
      body.destroy();
      return undefined;
    }
    assertOk(body);
    const { date, etag, 'last-modified': lastModified, 'content-length': length, link } = body.headers;
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

function assertOk({ statusCode = 0, headers }: IncomingMessage): void {
  if (statusCode === 200) return;
  const reason = `the dataset's server responded with ${statusCode} instead of 200`;
  if (TEMPORARY_STATUSES.includes(statusCode)) {
    throw new OriginUnavailableError(reason, retryAfterSeconds(headers['retry-after']));
  }
  throw new DatasetError(reason);
}

function conditions({ etag, lastModified }: Validators): Record<string, string> {
  if (etag !== undefined) return { 'if-none-match': etag };
  return lastModified === undefined ? {} : { 'if-modified-since': lastModified };
}
