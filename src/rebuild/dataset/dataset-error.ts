import { truncateReason } from '../process/reason-text.js';

/**
 * The dataset cannot be downloaded or violates the contract. The message is for the operator, names line and reason, and
 * has at most `MAX_REASON_LENGTH` characters.
 */
export class DatasetError extends Error {
  override readonly name = 'DatasetError';

  constructor(message: string, options?: ErrorOptions) {
    super(truncateReason(message), options);
  }
}
