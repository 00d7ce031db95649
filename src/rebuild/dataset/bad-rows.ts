import { isConverted, type DatasetFormat } from '../../config/dataset-format.js';
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

/** Where the row on a line is: a converted list has a line for each package, after a header that its document lacks. */
export function placesIn(format: DatasetFormat): (line: number) => string {
  return isConverted(format) ? (line) => `row ${line - 1}` : (line) => `line ${line}`;
}

/** Counts invalid rows and logs those that are skipped. */
export class BadRows {
  /**
   * @param max maximum number of invalid rows that may be skipped.
   * @param placeOf where the row on a line is.
   * @param what the document that has the rows.
   */
  constructor(
    readonly max: number,
    private readonly log: Logger,
    readonly placeOf = placesIn('csv'),
    private readonly what = 'the dataset',
    private readonly found = { count: 0, first: [] as string[] },
  ) {}

  get skipped(): SkippedRows {
    return this.found;
  }

  /** Those of another document, which count together with these. */
  in(what: string): BadRows {
    return new BadRows(this.max, this.log, (line) => `${what}: line ${line}`, what, this.found);
  }

  /** @throws {DatasetError} if more rows are invalid than may be skipped. */
  skip(line: number, rule: string): void {
    const reason = truncateReason(rule);
    const { first } = this.found;
    const count = ++this.found.count;
    if (count > this.max) {
      const allowed =
        this.max === 0 ? '' : ` (more rows are invalid than DATASET_MAX_BAD_ROWS=${this.max} allows)`;
      throw new DatasetError(`${this.placeOf(line)}: ${reason}${allowed}`);
    }
    if (count <= DESCRIBED) first.push(`${this.placeOf(line)}: ${reason}`);
    this.log.warn({ line, reason }, `an invalid row of ${this.what} was skipped`);
  }
}
