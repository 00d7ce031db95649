import type { Logger } from '../log.js';
import { DatasetError } from './dataset-error.js';
import { truncateReason } from './reason-text.js';

/** Counts the wrong rows, and logs those that are skipped. */
export class BadRows {
  #count = 0;

  constructor(
    private readonly max: number,
    private readonly log: Logger,
  ) {}

  /** @throws {DatasetError} beyond the number that may be skipped. */
  skip(line: number, rule: string): void {
    const reason = truncateReason(rule);
    this.#count++;
    if (this.#count > this.max) {
      const allowed =
        this.max === 0 ? '' : ` (and ${this.max} wrong rows before it, which is as many as may be skipped)`;
      throw new DatasetError(`line ${line}: ${reason}${allowed}`);
    }
    this.log.warn({ line, reason }, 'a wrong row of the dataset is skipped');
  }
}
