/**
 * Elasticsearch cannot be reached, or cannot serve requests at the moment. Its message names no host; what Elasticsearch said is
 * the cause.
 */
export class ElasticsearchUnavailableError extends Error {
  override readonly name = 'ElasticsearchUnavailableError';
}

/** Elasticsearch refuses to run a search that this service needs, because of a setting of the cluster or an index. */
export class SearchRefusedError extends Error {
  override readonly name = 'SearchRefusedError';
}

/** A node starts or has no master, or a proxy cannot reach it. Not 429: retries do not help a busy node. */
export const RETRYABLE_STATUSES = [502, 503, 504];

/** This node did not respond in time, or is not ready. Another one may respond to the same request. */
export class NodeUnavailableError extends ElasticsearchUnavailableError {}

/**
 * There was no connection to this node, or it broke before the whole response: whatever the reason is, it can be gone by
 * the next attempt.
 */
export class ConnectionFailedError extends NodeUnavailableError {}

/** This node responded, but could not search a copy of the index. Another one may. */
export class ShardUnavailableError extends ElasticsearchUnavailableError {}

/** An index is gone: usually it was pruned after a flip that this replica has not seen yet. */
export class IndexGoneError extends Error {
  override readonly name = 'IndexGoneError';

  constructor(readonly index: string) {
    super(`there is no index ${index}`);
  }
}

/** An operator closed an index: searches succeed again once it is opened. */
export class IndexClosedError extends ElasticsearchUnavailableError {
  constructor(readonly index: string) {
    super('the index is closed');
  }
}

/** Whether the same request may succeed later. This includes 401 and 403: an operator can correct the key. */
export function isRetryable(status: number): boolean {
  return status >= 500 || status === 429 || status === 401 || status === 403 || status === 408;
}

/** An error as Elasticsearch describes it, except that something is missing. */
const DESCRIBED_ERROR = /"type":"(?!\w*not_found)\w+_exception"/;

/**
 * Whether a response comes from Elasticsearch, and not from a proxy: by a header that its responses have, except some errors,
 * for example of a read-only cluster. Trusts a missing-index error only with the header: it ends a snapshot's service.
 */
export function isFromElasticsearch(
  status: number,
  headers: Readonly<Record<string, unknown>>,
  body: string,
): boolean {
  return headers['x-elastic-product'] === 'Elasticsearch' || (status >= 400 && DESCRIBED_ERROR.test(body));
}

/** A reason in the body: the key was not compared, so it may be valid. */
const KEY_LOOKUP_FAILURE = /apikey authentication for id \S+ encountered a failure/;

/**
 * Whether Elasticsearch could not look up the API key of a request. While its security index has no active shard, as in the
 * seconds after a node has started, 9.4 rejects every key with 401. Later versions respond with 503.
 */
export function isKeyLookupFailure(status: number, body: string): boolean {
  return status === 401 && KEY_LOOKUP_FAILURE.test(body);
}
