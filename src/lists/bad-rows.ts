import type { Logger } from '../util/log.js';
import { DatasetError } from './dataset-error.js';
import { truncateReason } from '../util/reason-text.js';

/** Number of skipped rows that are described. */
const DESCRIBED = 10;

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
  skip(place: string, rule: string): void {
    if (this.#places.has(place)) return;
    const reason = truncateReason(rule);
    if (this.#places.size === this.max) {
      const allowed =
        this.max === 0 ? '' : ` (more rows are invalid than DATASET_MAX_BAD_ROWS=${this.max} allows)`;
      throw new DatasetError(`${place}: ${reason}${allowed}`);
    }
    this.#places.add(place);
    if (this.#first.length < DESCRIBED) this.#first.push(`${place}: ${reason}`);
    this.log.warn({ place, reason }, 'an invalid row of the dataset was skipped');
  }
}
