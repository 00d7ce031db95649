import { errors } from '@elastic/elasticsearch';
import { describeAuthError } from '../clients/elasticsearch.js';
import { DatasetError } from './dataset-error.js';
import { truncateReason } from './reason-text.js';
import { redactAddresses } from './redact-addresses.js';

/** The reason of a failed rebuild, as clients see it: the addresses of the engines are in the log only. */
export function publicReason(error: Error): string {
  return truncateReason(describe(error));
}

function describe(error: Error): string {
  const refusal = describeAuthError(error, 'ELASTICSEARCH_REBUILD_API_KEY');
  if (refusal !== undefined) return refusal;
  // Its message may quote the dataset, whose URLs are no secret.
  if (error instanceof DatasetError) return error.message;
  if (error instanceof errors.ResponseError) return describeResponse(error);
  const silent =
    error instanceof errors.ConnectionError ||
    error instanceof errors.NoLivingConnectionsError ||
    error instanceof errors.TimeoutError;
  return silent ? 'Elasticsearch does not respond' : redactAddresses(error);
}

/** Omits the message, in which Elasticsearch names its nodes and a proxy its host. */
function describeResponse({ statusCode, body }: errors.ResponseError): string {
  const { error } = (body ?? {}) as { error?: { type?: unknown } };
  const type = typeof error?.type === 'string' && /^[a-z_]{1,80}$/.test(error.type) ? `: ${error.type}` : '';
  return `Elasticsearch answered ${statusCode}${type}`;
}
