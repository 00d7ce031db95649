import { DatasetError, UnavailableError } from '../dataset-error.js';
import { describeFailure } from '../describe-failure.js';
import { firstPlausibleDate, gzipDate } from '../dates.js';
import type { DatasetOrigin } from '../origin.js';
import { enforceMinimumRate, type Transfer } from '../transfer-limits.js';
import { decompress, peek } from './decompress.js';

/** Bytes of a gzip header up to the end of its date. */
const GZIP_DATE_BYTES = 8;

/** A document was not received to its end. */
export class InterruptedError extends UnavailableError {}

/** Bounds of all documents of a list together, and what they have used. */
export interface Sizes {
  /** Maximum of either, in bytes. */
  max: number;
  bytes: number;
  textBytes: number;
}

/** A document that is being transferred. It can be read once. */
export class Document {
  #gzipDate: Date | undefined;
  /** The date that its text states. */
  statedDate: Date | undefined;

  constructor(
    private readonly origin: DatasetOrigin,
    private readonly transfer: Transfer,
    private readonly sizes: Sizes,
  ) {}

  /** Its address, after redirects. */
  get url(): string {
    return this.origin.address;
  }

  /** The `Link` header of its response. */
  get link(): string | undefined {
    return this.origin.link;
  }

  /** When it was made; undefined if it is unknown. */
  get takenAt(): Date | undefined {
    const { lastModified, fileTime, date } = this.origin;
    return firstPlausibleDate(lastModified, this.statedDate, this.#gzipDate, fileTime, date);
  }

  /** Its bytes as they are sent. @throws {InterruptedError} */
  async *bytes(): AsyncGenerator<Buffer> {
    const source = enforceMinimumRate(this.origin.body, this.transfer);
    try {
      const { start, chunks } = await peek(source, GZIP_DATE_BYTES);
      this.#gzipDate = gzipDate(start);
      for await (const chunk of chunks) {
        this.#count('bytes', chunk);
        yield chunk;
      }
      await this.origin.assertUnchanged?.();
    } catch (error) {
      if (this.transfer.signal.aborted) throw error;
      if (error instanceof DatasetError && !(error instanceof UnavailableError)) throw error;
      const reason = error instanceof DatasetError ? error.message : describeFailure(error as Error);
      throw new InterruptedError(reason, undefined, { cause: error });
    }
  }

  /** Its text, decompressed. */
  async *text(): AsyncGenerator<Buffer> {
    for await (const chunk of decompress(this.bytes())) {
      this.#count('textBytes', chunk);
      yield chunk;
    }
  }

  #count(what: 'bytes' | 'textBytes', chunk: Buffer): void {
    this.sizes[what] += chunk.length;
    const { max } = this.sizes;
    if (this.sizes[what] > max) throw new DatasetError(`the dataset is larger than ${max} bytes`);
  }
}
