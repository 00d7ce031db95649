import { errors } from '@elastic/elasticsearch';
import { describeAuthError } from '../clients/elasticsearch.js';
import { DatasetError } from './dataset-error.js';
import { truncateReason } from './reason-text.js';
import { redactAddresses } from './redact-addresses.js';

/** The reason of a failed rebuild for clients. Only the log contains addresses of Elasticsearch and Redis. */
export function publicReason(error: Error): string {
  return truncateReason(describe(error));
}

function describe(error: Error): string {
  const refusal = describeAuthError(error, 'ELASTICSEARCH_REBUILD_API_KEY');
  if (refusal !== undefined) return refusal;
  // Not redacted: the message may quote URLs of the dataset, which are public.
  if (error instanceof DatasetError) return error.message;
  if (error instanceof errors.ResponseError) return describeResponse(error);
  const silent =
    error instanceof errors.ConnectionError ||
    error instanceof errors.NoLivingConnectionsError ||
    error instanceof errors.TimeoutError;
  return silent ? 'Elasticsearch does not respond' : redactAddresses(error);
}

/** Omits the message of the response, which may contain the host names of nodes or of a proxy. */
function describeResponse({ statusCode, body }: errors.ResponseError): string {
  const { error } = (body ?? {}) as { error?: { type?: unknown } };
  const type = typeof error?.type === 'string' && /^[a-z_]{1,80}$/.test(error.type) ? `: ${error.type}` : '';
  return `Elasticsearch responded with ${statusCode}${type}`;
}
