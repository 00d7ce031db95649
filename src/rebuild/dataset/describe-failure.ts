import { messageOf } from '../../error-message.js';
import { redactAddresses } from './redact-addresses.js';

/** The reason of a failed transfer. Node's message for a connection that closes during the response is only "aborted". */
export function describeFailure(error: Error): string {
  const { message } = error;
  const reason =
    message === 'aborted' ? 'the connection was closed before the end' : messageOf(error, redactAddresses);
  return `the dataset could not be downloaded: ${reason}`;
}
