import { createHash, randomUUID, type Hash } from 'node:crypto';
import { open, unlink, writeFile, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../error-message.js';
import { DatasetError } from '../dataset/dataset-error.js';
import {
  firstPlausibleDate,
  gzipDate,
  openFile,
  openHttp,
  type DatasetOrigin,
  type Validators,
} from '../dataset/origin.js';
import { readText } from '../dataset/text.js';
import { redactAddresses } from '../dataset/redact-addresses.js';
import {
  assertFreeSpace,
  enforceMinimumRate,
  limitByFreeSpace,
  limitBytes,
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
}

/**
 * Fetches a dataset into a file that disappears when it is closed, or its process ends.
 * @param url `http(s)://…` or `file:…`, plain or gzip.
 * @returns undefined if the dataset is unchanged, according to its origin.
 * @throws {DatasetError} with the reason.
 */
export async function download(
  url: string,
  signal: AbortSignal,
  { timeoutMs, known, ...bounds }: DownloadOptions,
): Promise<DownloadedDataset | undefined> {
  const { maxBytes, reservedBytes, windowMs } = { ...DOWNLOAD_LIMITS, ...bounds };
  const file = await openNamelessFile();
  const late = new AbortController();
  const deadline = setTimeout(() => late.abort(tooLate(timeoutMs)), timeoutMs);
  const timeouts = { windowMs, signal: AbortSignal.any([signal, late.signal]) };
  try {
    const origin = url.startsWith('file:') ? await openFile(url) : await openHttp(url, timeouts, known);
    if (origin === undefined) {
      await file.close();
      return undefined;
    }
    const hash = createHash('sha256');
    try {
      let chunks = limitBytes(maxBytes, enforceMinimumRate(origin.body, timeouts));
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
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    if (signal.aborted) throw error;
    const cause = (late.signal.aborted ? late.signal.reason : error) as Error;
    if (cause instanceof DatasetError) throw cause;
    throw new DatasetError(`the dataset could not be downloaded: ${describe(cause)}`, { cause });
  } finally {
    clearTimeout(deadline);
  }
}

function tooLate(timeoutMs: number): DatasetError {
  return new DatasetError(
    `the dataset could not be downloaded within ${timeoutMs / 1000} s (DATASET_DOWNLOAD_TIMEOUT_SECONDS)`,
  );
}

/**
 * If this process is killed, nothing is left: at most an empty file, between the two calls. So nothing has to be cleaned up in a
 * folder that other processes may use, too.
 */
async function openNamelessFile(): Promise<FileHandle> {
  const path = join(tmpdir(), `package-registry-search-${randomUUID()}`);
  try {
    const file = await open(path, 'wx+', 0o600);
    await unlink(path);
    return file;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new DatasetError(`no file can be created in the temporary folder (TMPDIR): ${code}`, { cause });
  }
}

/** @param file the downloaded one. */
async function dateOf({ lastModified, fileTime }: DatasetOrigin, file: FileHandle): Promise<Date> {
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(8), position: 0 });
  const compressedAt = gzipDate(buffer.subarray(0, bytesRead));
  return firstPlausibleDate(lastModified, compressedAt, fileTime) ?? new Date();
}

/** Node's message for a connection that closes during the response is only "aborted". */
function describe(error: Error): string {
  if (error.message === 'aborted') return 'the connection was closed before the end';
  return messageOf(error, redactAddresses);
}

async function* hashed(source: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    hash.update(chunk);
    yield chunk;
  }
}
