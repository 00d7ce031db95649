/** Elasticsearch cannot be reached or serve requests now. The message names no host. `cause`: its error, if any. */
export class ElasticsearchUnavailableError extends Error {
  override readonly name = 'ElasticsearchUnavailableError';
}

/** Elasticsearch refuses a search permanently, usually because of a setting of the cluster or an index. */
export class SearchRefusedError extends Error {
  override readonly name = 'SearchRefusedError';
}

/** A node did not respond in time, or is not ready. Another node may serve the same request. */
export class NodeUnavailableError extends ElasticsearchUnavailableError {}

/** The connection to a node failed, or broke before the response was complete. The next attempt may succeed. */
export class ConnectionFailedError extends NodeUnavailableError {}

/** A node responded, but could not search a copy of the index. Another node may succeed. */
export class ShardUnavailableError extends ElasticsearchUnavailableError {}

/** An index does not exist any more. Usually it was pruned after a flip that this replica has not noticed yet. */
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

/** An error in the format of Elasticsearch, except errors about missing indices or aliases. */
const DESCRIBED_ERROR = /"type":"(?!\w*not_found)\w+_exception"/;

/** The reason in Elasticsearch's error if it could not look up an API key. The key may be valid. */
const KEY_LOOKUP_FAILURE = /apikey authentication for id \S+ encountered a failure/;

/** Status for a request that is too large for Elasticsearch or a proxy. Another node would reject it, too. */
const TOO_LARGE = 413;

/**
 * Why a response says nothing about indices, aliases or keys; undefined if it does.
 * - A proxy's 404 does not mean that an index is absent. Elasticsearch sends the header `X-Elastic-Product`, except
 *   with some errors, for example while the cluster is read-only. A missing-index error makes this service drop a
 *   snapshot, so this error is trusted only with the header.
 * - While the security index has no active shard, as in the seconds after a node has started, Elasticsearch 9.4 rejects
 *   every key with 401. Later versions respond with 503.
 */
export function distrustReason(
  status: number,
  headers: Readonly<Record<string, unknown>>,
  body: string,
): string | undefined {
  if (status === 401 && KEY_LOOKUP_FAILURE.test(body))
    return 'Elasticsearch cannot look up API keys at the moment';
  const isFromElasticsearch =
    headers['x-elastic-product'] === 'Elasticsearch' ||
    status === TOO_LARGE ||
    (status >= 400 && DESCRIBED_ERROR.test(body));
  return isFromElasticsearch ? undefined : `something other than Elasticsearch responded with ${status}`;
}
