import { messageOf, truncateReason } from '../../util/reason-text.js';
import type { Logger } from '../../util/log.js';

/**
 * The dataset cannot be downloaded or is invalid. The message is for the operator. It states the reason and, if known,
 * the place, in at most `MAX_REASON_LENGTH` characters.
 */
export class DatasetError extends Error {
  override readonly name = 'DatasetError';

  constructor(message: string, options?: ErrorOptions) {
    super(truncateReason(message), options);
  }
}

/** The origin did not send a document, but another request may succeed. */
export class OriginUnavailableError extends DatasetError {
  /** @param retryAfterSeconds from the header `Retry-After`; undefined without it. */
  constructor(
    message: string,
    readonly retryAfterSeconds?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * The reason of a failed transfer. Node's message for a connection that closes during the response is only "aborted".
 */
export function describeFailure(error: Error): string {
  const reason = error.message === 'aborted' ? 'the connection was closed before the end' : messageOf(error);
  return `the dataset could not be downloaded: ${reason}`;
}

/** Maximum length of `SkippedRows.first`. */
const MAX_DESCRIBED = 10;

/** The invalid rows of a dataset that were skipped. */
export interface SkippedRows {
  count: number;
  /** Places and reasons of the first ten rows. */
  first: readonly string[];
}

/** Counts invalid packages and weights, and logs skipped ones. */
export class BadRows {
  /** A set, because a page may be read twice. */
  readonly #places = new Set<string>();
  readonly #first: string[] = [];

  /** @param max maximum number of rows that may be skipped. */
  constructor(
    readonly max: number,
    private readonly log: Logger,
  ) {}

  get skipped(): SkippedRows {
    return { count: this.#places.size, first: this.#first };
  }

  /**
   * @param place of the row, such as `line 3`.
   * @throws {DatasetError} if more than `max` rows are invalid.
   */
  skip(place: string, text: string): void {
    if (this.#places.has(place)) return;
    const reason = truncateReason(text);
    if (this.#places.size === this.max) {
      const allowed =
        this.max === 0 ? '' : ` (more rows are invalid than DATASET_MAX_BAD_ROWS=${this.max} allows)`;
      throw new DatasetError(`${place}: ${reason}${allowed}`);
    }
    this.#places.add(place);
    if (this.#first.length < MAX_DESCRIBED) this.#first.push(`${place}: ${reason}`);
    this.log.warn({ place, reason }, 'an invalid row of the dataset was skipped');
  }
}
