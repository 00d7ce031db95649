import type { SearchPool } from './search-pool.js';
import { parseResponse, type Hits } from './msearch-response.js';

/** The body of one search. */
export type SearchBody = Record<string, unknown>;

/** The parts of a response to keep: the hits, and the fields that show whether the response is complete. */
const FILTER_PATH = [
  'timed_out',
  '_shards.failed',
  'hits.total.value',
  'hits.hits.fields',
  'hits.hits.matched_queries',
  'error',
  'status',
]
  .map((path) => `responses.${path}`)
  .join(',');

/** A node searches its own copy of the index, so a hanging node does not affect the others. */
const HEADER = { preference: '_local' };

/**
 * The request that runs searches: its path and its newline-delimited body.
 * @param indices one, or several that are searched as one.
 * @param concurrency maximum number of concurrent searches, and of indices searched at a time; by default all.
 */
export function msearchRequest(
  indices: string | readonly string[],
  bodies: SearchBody[],
  concurrency?: number,
): { path: string; body: string } {
  const limit = concurrency === undefined ? '' : `&max_concurrent_searches=${concurrency}`;
  const indexLimit =
    limit === '' || typeof indices === 'string' ? '' : `&max_concurrent_shard_requests=${concurrency}`;
  // The names of many indices would not fit into the request line.
  const [index, header] =
    typeof indices === 'string' ? [`/${indices}`, HEADER] : ['', { ...HEADER, index: indices }];
  const before = JSON.stringify(header);
  return {
    path: `${index}/_msearch?filter_path=${FILTER_PATH}${limit}${indexLimit}`,
    body: bodies.map((body) => `${before}\n${JSON.stringify(body)}\n`).join(''),
  };
}

/**
 * Runs searches in one request and returns the hits of each.
 * @param indices one, or several that are searched as one.
 * @param opaqueId names the request in Elasticsearch's tasks and slow logs.
 * @param concurrency maximum number of concurrent searches, and of indices searched at a time; by default all.
 * @throws {IndexGoneError} if there is no such index.
 * @throws {ElasticsearchUnavailableError} if Elasticsearch does not respond in time, or a shard failed or timed out.
 */
export async function runSearches(
  pool: SearchPool,
  indices: string | readonly string[],
  bodies: SearchBody[],
  opaqueId: string,
  concurrency?: number,
): Promise<Hits[]> {
  const { path, body } = msearchRequest(indices, bodies, concurrency);
  return pool.post(path, body, opaqueId, (text) => parseResponse(text, bodies.length, String(indices)));
}
