import { errors } from '@elastic/elasticsearch';
import { createRedactor } from '../util/redact.js';
import { truncateReason, messageOf } from '../util/reason-text.js';
import { describeAuthError, errorIn, isSilent } from '../elasticsearch/elasticsearch.js';
import { DatasetError } from '../lists/fetch/dataset-error.js';

/** @param secrets are redacted before the reason is stored or sent anywhere. */
export function failureReason(error: Error, secrets: readonly string[]): string {
  return truncateReason(createRedactor(secrets)(reasonOf(error)));
}

/** The messages of an error and its causes, in one line. It may contain addresses and secrets. */
export function reasonOf(error: Error): string {
  const refusal = describeAuthError(error, 'ELASTICSEARCH_REBUILD_API_KEY');
  if (refusal !== undefined) return `${refusal}: npm run keys makes a new one`;
  // Its message quotes its cause.
  if (error instanceof DatasetError) return error.message;
  const messages = isSilent(error) ? ['Elasticsearch does not respond'] : [];
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const text = describe(at);
    if (!messages.some((message) => message.includes(text))) messages.push(text);
  }
  return messages.join(': ');
}

function describe(error: Error): string {
  if (!(error instanceof errors.ResponseError)) return inOneLine(messageOf(error));
  const message = inOneLine(`Elasticsearch responded with ${error.statusCode}: ${error.message}`);
  // The message of the client has the reasons of root causes, but not the reason of an error without them.
  const reason = inOneLine(errorIn(error).reason ?? '');
  return message.includes(reason) ? message : `${message}: ${reason}`;
}

function inOneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
