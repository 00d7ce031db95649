import type { Client, estypes } from '@elastic/elasticsearch';
import { ElasticsearchUnavailableError } from '../elasticsearch/elasticsearch-errors.js';
import { loadingAliasOf } from '../snapshot/index-names.js';
import { retry, type RetryOptions } from './retry.js';

/** A document that is written to a new index. The same id replaces it, so that bulk requests are idempotent. */
export interface NewDocument {
  id: string;
  /** The document as JSON. */
  source: string;
}

/**
 * A bulk request ends with the document that reaches this number of bytes. A document has at most 40 KB. For requests
 * of this size, the round trip is negligible, Elasticsearch's heap can hold many requests, and proxies accept the body:
 * their default limit is 1 MiB.
 */
const BULK_BYTES = 1_000_000;

interface LoadOptions extends RetryOptions {
  /** Bulk requests at the same time. */
  inFlight: number;
  /** Called with the number of documents written so far. */
  onRows?: (rows: number) => void;
}

/**
 * Writes documents into an index that has its loading alias.
 * @param documents in batches of any size.
 * @returns the number of documents.
 * @throws {Error} with the reason if a document is rejected, and the errors of `documents`.
 */
export async function load(
  client: Client,
  index: string,
  documents: AsyncIterable<Iterable<NewDocument>>,
  options: LoadOptions,
): Promise<number> {
  let loaded = 0;
  const bulks = bulkRequests(documents);
  // All senders share one generator. A failure of one sender ends the generator and the retries of the others.
  const failing = new AbortController();
  const step = { ...options, signal: AbortSignal.any([options.signal, failing.signal]) };
  const sender = async () => {
    try {
      for await (const { body, count } of bulks) {
        await sendBulk(client, index, body, step);
        options.onRows?.((loaded += count));
      }
    } catch (error) {
      failing.abort(error);
    }
  };
  await Promise.all(Array.from({ length: options.inFlight }, sender));
  failing.signal.throwIfAborted();
  return loaded;
}

/** The bodies of bulk requests (newline-delimited JSON), each with the number of its documents. */
async function* bulkRequests(documents: AsyncIterable<Iterable<NewDocument>>) {
  let body = '';
  let bytes = 0;
  let count = 0;
  for await (const batch of documents) {
    for (const { id, source } of batch) {
      const action = `{"index":{"_id":${JSON.stringify(id)}}}\n${source}\n`;
      body += action;
      bytes += Buffer.byteLength(action);
      count++;
      if (bytes < BULK_BYTES) continue;
      yield { body, count };
      body = '';
      bytes = 0;
      count = 0;
    }
  }
  if (count > 0) yield { body, count };
}

/** Reduces a response to its member `errors` and the errors of rejected documents. */
const FILTER_PATH = 'errors,items.*.error';

/** Error types of temporary rejections: Elasticsearch is overloaded, or a shard is unavailable. */
const RETRYABLE_REJECTIONS = [
  'es_rejected_execution_exception',
  'circuit_breaking_exception',
  'unavailable_shards_exception',
];

/** Retries while Elasticsearch is unavailable or rejects a document temporarily. */
async function sendBulk(client: Client, index: string, body: string, options: RetryOptions): Promise<void> {
  // With `require_alias`, the request fails if the alias no longer exists. A request with the name of a deleted index
  // would create a new index.
  const path = `/${loadingAliasOf(index)}/_bulk`;
  const querystring = { require_alias: true, filter_path: FILTER_PATH };
  await retry(async (signal) => {
    const { errors, items = [] } = await client.transport.request<Partial<estypes.BulkResponse>>(
      { method: 'POST', path, querystring, bulkBody: body },
      { signal, maxRetries: 0 },
    );
    if (!errors) return;
    const rejections = items.map(({ index }) => index?.error).filter((one) => one !== undefined);
    const rejection = rejections.find(({ type }) => !RETRYABLE_REJECTIONS.includes(type)) ?? rejections[0];
    const message = `Elasticsearch rejected a document: ${rejection?.type}`;
    const details = { cause: new Error(rejection?.reason ?? undefined) };
    throw rejection !== undefined && RETRYABLE_REJECTIONS.includes(rejection.type)
      ? new ElasticsearchUnavailableError(message, details)
      : new Error(message, details);
  }, options);
}
