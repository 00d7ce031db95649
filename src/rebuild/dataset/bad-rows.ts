import type { Logger } from '../../log.js';
import { DatasetError } from './dataset-error.js';
import { truncateReason } from '../process/reason-text.js';

/** How many skipped rows are described. */
const DESCRIBED = 10;

/** The invalid rows of a dataset that were skipped. */
export interface SkippedRows {
  count: number;
  /** The line and the reason of the first ten. */
  first: readonly string[];
}

/** Counts invalid rows and logs those that are skipped. */
export class BadRows {
  #count = 0;
  readonly #first: string[] = [];

  constructor(
    private readonly max: number,
    private readonly log: Logger,
    /** Where the row on a line is. */
    readonly placeOf = (line: number) => `line ${line}`,
  ) {}

  get skipped(): SkippedRows {
    return { count: this.#count, first: this.#first };
  }

  /** @throws {DatasetError} if more rows are invalid than may be skipped. */
  skip(line: number, rule: string): void {
    const reason = truncateReason(rule);
    this.#count++;
    if (this.#count > this.max) {
      const allowed =
        this.max === 0 ? '' : ` (more rows are invalid than DATASET_MAX_BAD_ROWS=${this.max} allows)`;
      throw new DatasetError(`${this.placeOf(line)}: ${reason}${allowed}`);
    }
    if (this.#count <= DESCRIBED) this.#first.push(`${this.placeOf(line)}: ${reason}`);
    this.log.warn({ line, reason }, 'an invalid row of the dataset was skipped');
  }
}
