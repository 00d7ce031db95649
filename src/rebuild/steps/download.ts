import { createHash, type Hash } from 'node:crypto';
import { writeFile, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import type { DatasetConfig } from '../../config/config.js';
import type { JsonPaths } from '../../config/json-paths.js';
import { DatasetError } from '../dataset/dataset-error.js';
import { describeFailure } from '../dataset/describe-failure.js';
import { Documents, UnchangedError } from '../dataset/documents/documents.js';
import { FORMATS } from '../dataset/formats/index.js';
import { CsvWriter } from '../dataset/formats/to-csv.js';
import { openNamelessFile } from '../dataset/nameless-file.js';
import { firstPlausibleDate, gzipDate } from '../dataset/dates.js';
import type { Authorization } from '../dataset/http-request.js';
import { openFile, openHttp, type DatasetOrigin, type Validators } from '../dataset/origin.js';
import { chunksOf, readText } from '../dataset/text.js';
import { ofWeights } from '../dataset/weights.js';
import {
  assertFreeSpace,
  enforceMinimumRate,
  limitByFreeSpace,
  limitBytes,
  untilAborted,
  type Transfer,
} from '../dataset/transfer-limits.js';

/** Bounds of a download. If one is exceeded, the download fails and leaves nothing behind. */
export const DOWNLOAD_LIMITS = {
  /** Maximum size of the file and of its text, in bytes: forty times a registry of 4,000,000 names. */
  maxBytes: 16 * 2 ** 30,
  /** Free space reserved for others, in bytes: enough for logs and other temporary files. */
  reservedBytes: 64 * 2 ** 20,
  /** Timeout of the response headers, and of the minimum progress of the body, in milliseconds. */
  windowMs: 30_000,
};

/** A downloaded dataset, in a file that has no name. */
export interface DownloadedDataset {
  /**
   * When it was taken: the first plausible date of `Last-Modified`, the gzip header and the modification time of a local
   * file; the time of the download if there is none.
   */
  takenAt: Date;
  /** SHA-256 in hexadecimal. */
  digest: string;
  /** Undefined if the origin sends none. */
  validators: Validators | undefined;
  /** Reads the decompressed text from the beginning. Can be called more than once. */
  read(): AsyncIterable<Buffer>;
  /** Closes the file, which frees its space. */
  close(): Promise<void>;
}

interface DownloadOptions extends Partial<typeof DOWNLOAD_LIMITS> {
  /** Deadline of the whole download, redirects included, in milliseconds. */
  timeoutMs: number;
  /** Validators of the served dataset. If they still match, nothing is downloaded. */
  known?: Validators | undefined;
  /** Value of the header `Authorization`, only for the origin of the first address. */
  authorization?: string | undefined;
  /** What it is, for messages about a file; by default the dataset. */
  what?: string;
  /** Pause before a document of a list is asked for again, in milliseconds; it doubles. */
  pauseMs?: number;
  /** Called with the number of bytes that have arrived so far. */
  onBytes?: ((bytes: number) => void) | undefined;
}

/**
 * Fetches the configured dataset, and converts it to CSV meanwhile if it is a list in another format.
 * @returns undefined if the dataset is unchanged, according to its origin.
 * @throws {DatasetError} with the reason.
 */
export function downloadDataset(
  { format, urls, jsonPaths: paths, authorization, downloadTimeoutSeconds }: DatasetConfig,
  signal: AbortSignal,
  given: Pick<DownloadOptions, 'known' | 'onBytes'>,
): Promise<DownloadedDataset | undefined> {
  const options = { timeoutMs: downloadTimeoutSeconds * 1000, authorization, ...given };
  return format === 'csv'
    ? download(urls[0], signal, options)
    : downloadList({ format, urls, paths }, signal, options);
}

/**
 * Fetches a dataset into a file that disappears when it is closed, or its process ends.
 * @param url `http(s)://…` or `file:…`, plain or gzip.
 * @returns undefined if the dataset is unchanged, according to its origin.
 * @throws {DatasetError} with the reason.
 */
export function download(
  url: string,
  signal: AbortSignal,
  options: DownloadOptions,
): Promise<DownloadedDataset | undefined> {
  return intoFile(signal, options, async (file, { maxBytes, reservedBytes }, transfer) => {
    const origin = url.startsWith('file:')
      ? await openFile(url, options.what)
      : await openHttp(url, transfer, { known: options.known, authorization: forOrigin(url, options) });
    if (origin === undefined) return undefined;
    const hash = createHash('sha256');
    try {
      let chunks = limitBytes(maxBytes, enforceMinimumRate(origin.body, transfer));
      if (origin.bytes === undefined) chunks = limitByFreeSpace(chunks, tmpdir(), reservedBytes);
      else await assertFreeSpace(tmpdir(), reservedBytes, origin.bytes);
      await writeFile(file, hashed(chunks, hash));
      await origin.assertUnchanged?.();
    } finally {
      origin.body.destroy();
    }
    return {
      takenAt: await dateOf(origin, file),
      digest: hash.digest('hex'),
      validators: origin.validators,
      read: () => readText(file, maxBytes),
    };
  });
}

/**
 * The same for a document of weights, which is read later.
 * @param datasetUrl the address of the dataset, or of its first document, whose origin alone may see the authorization.
 */
export async function downloadWeights(
  url: string,
  datasetUrl: string,
  signal: AbortSignal,
  { authorization, ...options }: DownloadOptions,
): Promise<DownloadedDataset | undefined> {
  const isSameOrigin = new URL(url).origin === new URL(datasetUrl).origin;
  const secret = isSameOrigin ? { authorization } : {};
  try {
    return await download(url, signal, { ...options, ...secret, what: 'the weights' });
  } catch (error) {
    throw ofWeights(error);
  }
}

/** A list of packages in another format than CSV. */
export interface PackageList {
  format: keyof typeof FORMATS;
  /** One; several only for formats that have several documents. */
  urls: readonly [string, ...string[]];
  /** Only for the format `json`. */
  paths: JsonPaths;
}

/**
 * The same for a list in another format, which is converted to CSV meanwhile. The digest is that of the CSV: a list that is
 * written differently and has the same packages has not changed.
 */
export function downloadList(
  { format: name, urls, paths }: PackageList,
  signal: AbortSignal,
  options: DownloadOptions,
): Promise<DownloadedDataset | undefined> {
  const { known, pauseMs } = options;
  const authorization = forOrigin(urls[0], options);
  return intoFile(signal, options, async (file, { maxBytes, reservedBytes }, transfer) => {
    const format = FORMATS[name];
    const documents = new Documents(urls, {
      transfer,
      known,
      authorization,
      maxBytes,
      reservedBytes,
      pauseMs,
    });
    const csv = new CsvWriter(format);
    const hash = createHash('sha256');
    try {
      // Packages that were joined are written after the last transfer.
      const chunks = untilAborted(csv.write(format.read(documents, paths)), transfer.signal);
      await writeFile(file, hashed(limitByFreeSpace(chunks, tmpdir(), reservedBytes), hash));
      if (csv.rows === 0) throw new DatasetError('the list has no packages');
    } catch (error) {
      if (error instanceof UnchangedError) return undefined;
      if (!(error instanceof DatasetError) || documents.place === '') throw error;
      throw new DatasetError(`${documents.place}: ${error.message}`, { cause: error });
    } finally {
      documents.close();
    }
    const { header } = csv;
    return {
      takenAt: documents.takenAt ?? new Date(),
      digest: hash.update(header).digest('hex'),
      validators: documents.validators,
      read: () => concat(header, chunksOf(file)),
    };
  });
}

/** Runs a download with its bounds. @param fill returns undefined if the dataset is unchanged. */
async function intoFile(
  signal: AbortSignal,
  { timeoutMs, onBytes, ...bounds }: DownloadOptions,
  fill: (
    file: FileHandle,
    limits: typeof DOWNLOAD_LIMITS,
    transfer: Transfer,
  ) => Promise<Omit<DownloadedDataset, 'close'> | undefined>,
): Promise<DownloadedDataset | undefined> {
  const limits = { ...DOWNLOAD_LIMITS, ...bounds };
  const file = await openNamelessFile();
  const late = new AbortController();
  const deadline = setTimeout(() => late.abort(tooLate(timeoutMs)), timeoutMs);
  let arrived = 0;
  const transfer = {
    windowMs: limits.windowMs,
    signal: AbortSignal.any([signal, late.signal]),
    onBytes: (bytes: number) => onBytes?.((arrived += bytes)),
  };
  try {
    const filled = await fill(file, limits, transfer);
    if (filled !== undefined) return { ...filled, close: () => file.close() };
    await file.close();
    return undefined;
  } catch (error) {
    await file.close();
    if (signal.aborted) throw error;
    const cause = (late.signal.aborted ? late.signal.reason : error) as Error;
    if (cause instanceof DatasetError) throw cause;
    throw new DatasetError(describeFailure(cause), { cause });
  } finally {
    clearTimeout(deadline);
  }
}

function forOrigin(url: string, { authorization: value }: DownloadOptions): Authorization | undefined {
  return value === undefined ? undefined : { origin: new URL(url).origin, value };
}

function tooLate(timeoutMs: number): DatasetError {
  return new DatasetError(
    `the dataset could not be downloaded within ${timeoutMs / 1000} s (DATASET_DOWNLOAD_TIMEOUT_SECONDS)`,
  );
}

/** @param file the downloaded one. */
async function dateOf({ lastModified, fileTime }: DatasetOrigin, file: FileHandle): Promise<Date> {
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(8), position: 0 });
  const compressedAt = gzipDate(buffer.subarray(0, bytesRead));
  return firstPlausibleDate(lastModified, compressedAt, fileTime) ?? new Date();
}

async function* hashed(source: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    hash.update(chunk);
    yield chunk;
  }
}

async function* concat(header: Buffer, rows: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield header;
  yield* rows;
}
