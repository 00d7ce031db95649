import type { Config } from '../../config/config.js';
import type { Validators } from '../dataset/origin.js';
import { downloadDataset, downloadWeights, type DownloadedDataset } from './download.js';

/** The downloaded documents that a snapshot is built from. The caller must close them. */
export interface Inputs {
  dataset: DownloadedDataset;
  /** Undefined if there is no document of weights. */
  weights: DownloadedDataset | undefined;
}

type Found = Record<keyof Inputs, DownloadedDataset | undefined>;

/** What a server said of a document. */
export interface SeenDocument {
  /** SHA-256 in hexadecimal. */
  digest: string;
  validators?: Validators | undefined;
}

/** The same of a dataset, and of the document of its weights. */
export interface SeenDataset extends SeenDocument {
  weights?: SeenDocument | undefined;
}

interface Options {
  /** What the newest snapshot was built from, if nothing needs to be built from the same again. */
  known?: SeenDataset | undefined;
  /** Called if both are the known ones although one of them had to be downloaded. */
  onSeen?: ((seen: SeenDataset) => void) | undefined;
  /** Called with the number of bytes of a document that have arrived so far. */
  onBytes: (bytes: number) => void;
}

/**
 * Downloads the dataset and its weights.
 * @returns undefined if both are the known ones.
 */
export async function downloadInputs(
  { dataset, weights }: Pick<Config, 'dataset' | 'weights'>,
  signal: AbortSignal,
  { known, onSeen, onBytes }: Options,
): Promise<Inputs | undefined> {
  const { urls, authorization, downloadTimeoutSeconds } = dataset;
  const options = { timeoutMs: downloadTimeoutSeconds * 1000, authorization, onBytes };
  const get = (validators?: Validators) => downloadDataset(dataset, signal, { known: validators, onBytes });
  const getWeights = async (validators?: Validators) =>
    weights.url === undefined
      ? undefined
      : downloadWeights(weights.url, urls[0], signal, { ...options, known: validators });

  const found: Found = {
    dataset: await get(known?.validators),
    weights: undefined,
  };
  try {
    found.weights = await getWeights(known?.weights?.validators);
    if (known !== undefined && isSame(found.dataset, known) && isSame(found.weights, known.weights)) {
      const isDownloaded = found.dataset !== undefined || found.weights !== undefined;
      if (isDownloaded) {
        onSeen?.({ ...seenOf(found.dataset, known), weights: seenOf(found.weights, known.weights) });
      }
      await closeInputs(found);
      return undefined;
    }
    // If one document has changed, the other one is needed, too.
    found.dataset ??= await get();
    found.weights ??= await getWeights();
    return found as Inputs;
  } catch (error) {
    await closeInputs(found);
    throw error;
  }
}

/** Closes the files, which frees their space. */
export async function closeInputs({ dataset, weights }: Found): Promise<void> {
  await dataset?.close();
  await weights?.close();
}

/** @param document undefined if its server says that it has not changed, or there is none. */
function isSame(document: DownloadedDataset | undefined, known: SeenDocument | undefined): boolean {
  return document === undefined || document.digest === known?.digest;
}

function seenOf<T extends SeenDocument | undefined>(document: DownloadedDataset | undefined, known: T) {
  return document === undefined ? known : { digest: document.digest, validators: document.validators };
}
