import { errors } from '@elastic/elasticsearch';
import { describeAuthError, errorIn } from '../../elasticsearch/elasticsearch.js';
import { messageOf } from '../../util/error-message.js';
import { DatasetError } from '../../lists/dataset-error.js';
import { truncateReason } from '../../util/reason-text.js';
import { redactAddresses } from '../../lists/redact-addresses.js';
import { isSilent } from '../retry.js';

/** Maximum number of messages that are shown: of the error and its nested causes. */
const MAX_MESSAGES = 5;

/** Kinds of failures. A metric has them as values of its label `reason`. */
export const FAILURE_KINDS = ['dataset', 'credentials', 'elasticsearch', 'lock', 'process', 'other'] as const;

type FailureKind = (typeof FAILURE_KINDS)[number];

const KINDS: Partial<Record<string, FailureKind>> = {
  DatasetError: 'dataset',
  ElasticsearchUnavailableError: 'elasticsearch',
  FlipError: 'elasticsearch',
  LockLostError: 'lock',
  RetryableError: 'elasticsearch',
  SearchRefusedError: 'elasticsearch',
  StalledError: 'elasticsearch',
  ProcessFailedError: 'process',
};

/**
 * The kind of a failure, derived from the class of the error. Rejected credentials are recognised by the response of
 * Elasticsearch.
 */
export function failureKind(error: Error): FailureKind {
  if (describeAuthError(error, '') !== undefined) return 'credentials';
  if (error instanceof errors.ElasticsearchClientError) return 'elasticsearch';
  return KINDS[error.name] ?? 'other';
}

/** Describes for clients why a rebuild failed, without addresses of Elasticsearch or Redis. */
export function publicReason(error: Error): string {
  return truncateReason(describe(error));
}

function describe(error: Error): string {
  const refusal = describeAuthError(error, 'ELASTICSEARCH_REBUILD_API_KEY');
  if (refusal !== undefined) return refusal;
  // Not redacted: the only addresses in this message are quoted from the dataset, or are the origin of its server.
  if (error instanceof DatasetError) return error.message;
  if (error instanceof errors.ResponseError) return describeResponse(error);
  return isSilent(error) ? 'Elasticsearch does not respond' : messageOf(error, redactAddresses);
}

/** The messages of Elasticsearch or a library that `publicReason` omits, in one line. */
export function detailsOf(error: Error): string {
  const messages: string[] = [];
  for (let at: unknown = error; at instanceof Error && messages.length < MAX_MESSAGES; at = at.cause) {
    messages.push(at instanceof errors.ResponseError ? (errorIn(at).reason ?? at.message) : messageOf(at));
  }
  const shown = publicReason(error);
  return truncateReason(
    [...new Set(messages)]
      .filter((text) => !shown.includes(text))
      .join(': ')
      .replace(/\s+/g, ' '),
  );
}

/** Omits the message of the response, which may contain the host names of nodes or of a proxy. */
function describeResponse(error: errors.ResponseError): string {
  const { type } = errorIn(error);
  const shown = typeof type === 'string' && /^[a-z_]{1,80}$/.test(type) ? `: ${type}` : '';
  return `Elasticsearch responded with ${error.statusCode}${shown}`;
}
