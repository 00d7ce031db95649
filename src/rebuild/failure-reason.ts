import { errors } from '@elastic/elasticsearch';
import { describeRefusal } from '../clients/elasticsearch.js';
import { DatasetError } from './dataset-error.js';
import { truncateReason } from './reason.js';

/** What an address is replaced by. */
const HIDDEN = '(address hidden)';

/** Forms in which the errors of Node, of its libraries and of Elasticsearch contain addresses. */
const ADDRESSES = [
  // A URL.
  /\b[a-z][a-z\d+.-]*:\/\/[^\s"'<>()]+/gi,
  // `connect ECONNREFUSED <address>`, `getaddrinfo ENOTFOUND <host>`.
  /(?<=\bE[A-Z_]{3,} )\S+/g,
  // IPv6 in brackets, IPv4, and a host name; each with a port, which the first two may lack.
  /\[(?=(?:[\da-f.]*:){2})[\da-f:.]+(?:%\w+)?\](?::\d+)?/gi,
  /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w.])/g,
  /\b(?=[\w.-]*[a-z])[\w.-]+:\d{2,5}\b/gi,
];

/** Hides every address in the message of an error that a library or an engine worded. */
export function withoutAddresses({ message, code }: Error & { code?: unknown }): string {
  // These name the hosts of the certificate and of the request in prose.
  if (typeof code === 'string' && /CERT|TLS/.test(code)) return code;
  return ADDRESSES.reduce((text, address) => text.replaceAll(address, HIDDEN), message);
}

/** The reason of a failed rebuild, as clients see it: the addresses of the engines are in the log only. */
export function publicReason(error: Error): string {
  return truncateReason(describe(error));
}

function describe(error: Error): string {
  const refusal = describeRefusal(error, 'ELASTICSEARCH_REBUILD_API_KEY');
  if (refusal !== undefined) return refusal;
  // Its message may quote the dataset, whose URLs are no secret.
  if (error instanceof DatasetError) return error.message;
  const silent =
    error instanceof errors.ConnectionError ||
    error instanceof errors.NoLivingConnectionsError ||
    error instanceof errors.TimeoutError;
  return silent ? 'Elasticsearch does not respond' : withoutAddresses(error);
}
