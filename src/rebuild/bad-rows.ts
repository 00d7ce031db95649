import type { Logger } from '../log.js';
import { DatasetError } from './dataset-error.js';
import { truncateReason } from './reason-text.js';

/** Counts invalid rows and logs those that are skipped. */
export class BadRows {
  #count = 0;

  constructor(
    private readonly max: number,
    private readonly log: Logger,
  ) {}

  /** @throws {DatasetError} if more rows are invalid than may be skipped. */
  skip(line: number, rule: string): void {
    const reason = truncateReason(rule);
    this.#count++;
    if (this.#count > this.max) {
      const allowed =
        this.max === 0 ? '' : ` (after ${this.max} invalid rows, the maximum that may be skipped)`;
      throw new DatasetError(`line ${line}: ${reason}${allowed}`);
    }
    this.log.warn({ line, reason }, 'an invalid row of the dataset was skipped');
  }
}
