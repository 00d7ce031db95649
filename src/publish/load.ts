import type { Client, estypes } from '@elastic/elasticsearch';
import { encodeEntry, entryMembers, type PackageEntry } from '../snapshot/package-document.js';
import type { CheckedPackages } from '../lists/checked-packages.js';
import { kibanaFieldsOf } from '../snapshot/kibana-fields.js';
import { loadingAliasOf } from '../snapshot/index-names.js';
import { ElasticsearchUnavailableError } from '../elasticsearch/elasticsearch-errors.js';
import { retry, type RetryOptions } from './retry.js';

/**
 * A bulk request ends with the document that reaches this number of bytes. A document has at most 40 KB. For requests
 * of this size, the round trip is negligible, Elasticsearch's heap can hold many requests, and proxies accept the body:
 * their default limit is 1 MiB.
 */
export const BULK_BYTES = 1_000_000;
/**
 * Bulk requests in flight: Elasticsearch processes one while the next arrives. While another index is served, only one
 * request is in flight. This leaves a processor for searches: the slowest searches take half as long, and the load
 * takes a third longer.
 */
const IN_FLIGHT = 2;
const THROTTLED_IN_FLIGHT = 1;

interface LoadOptions extends RetryOptions {
  /** Whether to send one request at a time, because another index is being searched. */
  throttled: boolean;
  /** Called with the number of packages written so far. */
  onRows: (rows: number) => void;
}

/**
 * Writes every package of a checked dataset into an index. The `_id` is the package number, so that bulk
 * requests are idempotent.
 * @throws {Error} if a document is rejected or missing at the end.
 */
export async function bulkLoad(
  client: Client,
  index: string,
  dataset: Omit<CheckedPackages, 'urlHost'>,
  options: LoadOptions,
): Promise<void> {
  let loaded = 0;
  const bulks = bulkRequests(dataset);
  // All senders share one generator. A failure of one sender ends the generator and the retries of the others.
  const failing = new AbortController();
  const step = { ...options, signal: AbortSignal.any([options.signal, failing.signal]) };
  const sender = async () => {
    try {
      for await (const { body, count } of bulks) {
        await sendBulk(client, index, body, step);
        options.onRows((loaded += count));
      }
    } catch (error) {
      failing.abort(error);
    }
  };
  const length = options.throttled ? THROTTLED_IN_FLIGHT : IN_FLIGHT;
  await Promise.all(Array.from({ length }, sender));
  failing.signal.throwIfAborted();
  if (loaded !== dataset.total) throw new Error(`${loaded} of ${dataset.total} packages were loaded`);
}

/** The bodies of bulk requests (newline-delimited JSON), each with the number of its documents. */
async function* bulkRequests({ read, ordinalOf }: Pick<CheckedPackages, 'read' | 'ordinalOf'>) {
  let body = '';
  let bytes = 0;
  let count = 0;
  for await (const entries of read()) {
    for (const entry of entries) {
      const action = indexAction(entry, ordinalOf(entry.no));
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

/** The field `entry` has the package as `encodeEntry` encodes it for responses. */
function indexAction(entry: PackageEntry, ordinal: number): string {
  const members = entryMembers(entry);
  const fields = JSON.stringify(kibanaFieldsOf(entry.name)).slice(1, -1);
  const document = `{${members},"ordinal":${ordinal},${fields},"entry":"${encodeEntry(members)}"}`;
  return `{"index":{"_id":"${entry.no}"}}\n${document}\n`;
}

/** Reduces a response to its member `errors` and the errors of rejected documents. */
const FILTER_PATH = 'errors,items.*.error';

/** Error types of temporary rejections: Elasticsearch is overloaded, or a shard is unavailable. */
const RETRYABLE_REJECTIONS = [
  'es_rejected_execution_exception',
  'circuit_breaking_exception',
  'unavailable_shards_exception',
];

/**
 * Sends a bulk request to an index that is being loaded. Retries while Elasticsearch is unavailable or
 * rejects a document temporarily.
 * @param body newline-delimited JSON of idempotent actions.
 * @throws {Error} with the reason of a permanent rejection.
 */
export async function sendBulk(
  client: Client,
  index: string,
  body: string,
  options: RetryOptions,
): Promise<void> {
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
