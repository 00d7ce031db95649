import type { Config, DatasetConfig } from '../config/config.js';
import type { Validators } from '../snapshot/snapshot-meta.js';
import { DatasetError, describeFailure, type BadRows } from './fetch/dataset-error.js';
import { Documents, UnchangedError, type DocumentsOptions } from './fetch/documents.js';
import { crates } from './formats/crates.js';
import { csv } from './formats/csv.js';
import { debian } from './formats/debian.js';
import { json } from './formats/json.js';
import { jsonl } from './formats/jsonl.js';
import { lines } from './formats/lines.js';
import { npm } from './formats/npm.js';
import { packagist } from './formats/packagist.js';
import { pypi } from './formats/pypi.js';
import { rubygems } from './formats/rubygems.js';
import { PackageFile } from './package-file.js';
import { ofWeights, Weights } from './weights.js';

/** By the values of `DATASET_FORMAT`. Libraries that only one format needs are loaded when a list is read. */
const FORMATS = { crates, csv, debian, json, jsonl, lines, npm, packagist, pypi, rubygems };

/** Limits of a download. If a limit is exceeded, the download fails and leaves nothing behind. */
const DOWNLOAD_LIMITS = {
  /**
   * Maximum size of all documents together, and of their decompressed text, in bytes. It is forty times the size of a
   * list of 4,000,000 names.
   */
  maxBytes: 16 * 2 ** 30,
  /** Maximum waiting time for a response, and for more of its body, in milliseconds. */
  windowMs: 30_000,
};

/** How an unchanged document is recognised. */
interface KnownDocument {
  /** SHA-256 of the packages, or of the text of the weights, in hexadecimal. */
  digest: string;
  /** Undefined if the origin sends none. */
  validators?: Validators | undefined;
}

/** How an unchanged dataset and its unchanged document of weights are recognised. */
export interface KnownInputs extends KnownDocument {
  weights?: KnownDocument | undefined;
}

/** A downloaded dataset. The caller must close its packages. */
export interface DownloadedDataset extends KnownDocument {
  /**
   * The date of the newest document. The date of a document is the first plausible date of `Last-Modified`, the date
   * stated in the text, the gzip header, and the file's modification time or the header `Date`. If no document has a
   * plausible date, this is the time of the download.
   */
  takenAt: Date;
  packages: PackageFile;
}

export interface DownloadedWeights extends KnownDocument {
  weights: Weights;
}

/** The documents that a snapshot is built from. */
export interface Inputs {
  dataset: DownloadedDataset;
  /** Undefined if there is no document of weights. */
  weights: DownloadedWeights | undefined;
}

interface DownloadOptions extends Partial<typeof DOWNLOAD_LIMITS>, Pick<DocumentsOptions, 'pauseMs'> {
  /** Counts packages and weights that cannot be used. */
  badRows: BadRows;
  /** Validators of the document that the newest snapshot was built from. If they still match, nothing is downloaded. */
  known?: Validators | undefined;
  /** Called with the number of bytes that have arrived so far. */
  onBytes?: ((bytes: number) => void) | undefined;
}

interface InputOptions extends Omit<DownloadOptions, 'known'> {
  /**
   * Digests and validators of the newest snapshot's documents; undefined if a snapshot must be built even from
   * unchanged documents.
   */
  known?: KnownInputs | undefined;
}

/**
 * Downloads the dataset and its weights.
 * @returns undefined if both are unchanged.
 */
export async function downloadInputs(
  { dataset, weights }: Pick<Config, 'dataset' | 'weights'>,
  signal: AbortSignal,
  { known, ...options }: InputOptions,
): Promise<Inputs | undefined> {
  const get = (validators?: Validators) =>
    downloadDataset(dataset, signal, { ...options, known: validators });
  const getWeights = (packages?: PackageFile, validators?: Validators) =>
    downloadWeights({ dataset, weights }, packages, signal, { ...options, known: validators });

  let found = await get(known?.validators);
  try {
    let foundWeights = await getWeights(found?.packages, known?.weights?.validators);
    if (known !== undefined && isSame(found, known) && isSame(foundWeights, known.weights)) {
      await found?.packages.close();
      return undefined;
    }
    // If one document has changed, the other one is needed, too. Weights are joined to packages that were read before.
    if (found === undefined) foundWeights = undefined;
    found ??= (await get()) as DownloadedDataset;
    foundWeights ??= await getWeights(found.packages);
    return { dataset: found, weights: foundWeights };
  } catch (error) {
    await found?.packages.close();
    throw error;
  }
}

/** @param document undefined if its server responds that it has not changed, or if no document is configured. */
function isSame(document: KnownDocument | undefined, known: KnownDocument | undefined): boolean {
  return document === undefined || document.digest === known?.digest;
}

/**
 * Reads a list while it is transferred, checks each package on its own, and writes the packages into a temporary file.
 * @returns undefined if the list is unchanged, according to its origin.
 * @throws {DatasetError} with the reason.
 */
export async function downloadDataset(
  config: DatasetConfig,
  signal: AbortSignal,
  options: DownloadOptions,
): Promise<DownloadedDataset | undefined> {
  const packages = await PackageFile.create(FORMATS[config.format], config);
  try {
    const found = await download(config.urls, config, signal, options, async (documents) => {
      await packages.fill(documents, options.badRows);
      return packages;
    });
    if (found === undefined) await packages.close();
    return found && { ...found, packages };
  } catch (error) {
    await packages.close();
    throw error;
  }
}

/**
 * Reads the document of weights while it is transferred.
 * @param packages whose weights are read. Without them, only the digest of the document is useful.
 */
async function downloadWeights(
  { dataset, weights: { url, columns } }: Pick<Config, 'dataset' | 'weights'>,
  packages: PackageFile | undefined,
  signal: AbortSignal,
  options: DownloadOptions,
): Promise<DownloadedWeights | undefined> {
  if (url === undefined) return undefined;
  const named = { ...options, what: 'the weights' };
  try {
    const found = await download([url], dataset, signal, named, async (documents) => {
      const document = await documents.open();
      return Weights.read(document.text(), columns, packages, options.badRows);
    });
    return found && { ...found, weights: found.result };
  } catch (error) {
    throw ofWeights(error);
  }
}

/**
 * Downloads documents within the limits. The authorization is sent only to the origin of the dataset.
 * @returns undefined if the only document is unchanged.
 * @throws {DatasetError} with the reason.
 */
async function download<T extends { digest: string }>(
  urls: readonly [string, ...string[]],
  { urls: [first], authorization: value, downloadTimeoutSeconds }: DatasetConfig,
  signal: AbortSignal,
  { onBytes, ...options }: Omit<DownloadOptions, 'badRows'> & { what?: string },
  read: (documents: Documents) => Promise<T>,
): Promise<({ result: T } & Omit<DownloadedDataset, 'packages'>) | undefined> {
  const limits = { ...DOWNLOAD_LIMITS, ...options };
  const late = new AbortController();
  const deadline = setTimeout(() => late.abort(), downloadTimeoutSeconds * 1000);
  const transfer = {
    windowMs: limits.windowMs,
    signal: AbortSignal.any([signal, late.signal]),
    onBytes,
  };
  const { origin } = new URL(first);
  const isOwn = value !== undefined && new URL(urls[0]).origin === origin;
  const authorization = isOwn ? { origin, value } : undefined;
  const documents = new Documents(urls, { ...limits, transfer, authorization });
  try {
    const result = await read(documents);
    const { takenAt = new Date(), validators } = documents;
    return { result, digest: result.digest, takenAt, validators };
  } catch (error) {
    if (error instanceof UnchangedError) return undefined;
    if (signal.aborted) throw error;
    if (late.signal.aborted) {
      throw new DatasetError(
        `the dataset could not be downloaded within ${downloadTimeoutSeconds} s (DATASET_DOWNLOAD_TIMEOUT_SECONDS)`,
        { cause: error },
      );
    }
    if (error instanceof DatasetError) throw error;
    throw new DatasetError(describeFailure(error as Error), { cause: error });
  } finally {
    clearTimeout(deadline);
    documents.close();
  }
}
