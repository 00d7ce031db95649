import { messageOf } from '../util/error-message.js';
import { truncateReason } from '../util/reason-text.js';
import { redactAddresses } from './redact-addresses.js';

/**
 * The dataset cannot be downloaded or is invalid. The message is for the operator. It has the reason, names the place
 * if there is one, and has at most `MAX_REASON_LENGTH` characters.
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
  const { message } = error;
  const reason =
    message === 'aborted' ? 'the connection was closed before the end' : messageOf(error, redactAddresses);
  return `the dataset could not be downloaded: ${reason}`;
}
