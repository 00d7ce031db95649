import { errors, type Client } from '@elastic/elasticsearch';
import type { SearchBody } from './queries.js';

/** One hit: the package's JSON as it was written at the load, and the score where the search asked for it. */
export interface Hit {
  entry: string;
  score: number;
}

/** Elasticsearch does not answer, or answered only in part. */
export class EngineUnavailable extends Error {
  override readonly name = 'EngineUnavailable';
}

/** The index is gone: it was pruned after a flip that this replica has not seen yet. */
export class IndexGone extends Error {
  override readonly name = 'IndexGone';
}

/**
 * For the requests that users wait for: a retry follows at once. The client's own pause is up to two seconds, which is
 * all the time there is.
 */
export const WITHOUT_PAUSE = { retryBackoff: () => 0 };

/** What is kept of an answer: the hits, and what tells a whole answer from a partial one. */
const FILTER_PATH = [
  'timed_out',
  '_shards.failed',
  'hits.hits._score',
  'hits.hits.fields.entry',
  'error',
  'status',
]
  .map((path) => `responses.${path}`)
  .join(',');

interface MultiSearchAnswer {
  responses: {
    status: number;
    error?: { type: string; reason: string };
    timed_out?: boolean;
    _shards?: { failed: number };
    hits?: { hits?: { _score?: number | null; fields: { entry: [base64: string] } }[] };
  }[];
}

/**
 * Runs searches side by side in one request and returns the hits of each.
 * @throws {IndexGone} when there is no such index.
 * @throws {EngineUnavailable} when the engine does not answer in time, or a shard failed or ran out of time.
 */
export async function runSearches(client: Client, index: string, bodies: SearchBody[]): Promise<Hit[][]> {
  const lines = bodies.map((body) => `{}\n${JSON.stringify(body)}\n`).join('');
  const request = {
    method: 'POST',
    path: `/${index}/_msearch`,
    querystring: { filter_path: FILTER_PATH },
    bulkBody: lines,
  };
  const answer = await reach(() => client.transport.request<MultiSearchAnswer>(request, WITHOUT_PAUSE));
  return answer.responses.map((response) => {
    if (response.error?.type === 'index_not_found_exception') throw new IndexGone(index);
    if (response.error) {
      const description = `${response.error.type}: ${response.error.reason}`;
      if (isTemporary(response.status)) throw new EngineUnavailable(description);
      throw new Error(description);
    }
    if (response.timed_out !== false || response._shards?.failed !== 0) {
      throw new EngineUnavailable('a shard failed or ran out of time');
    }
    const hits = response.hits?.hits ?? [];
    return hits.map((hit) => ({
      entry: Buffer.from(hit.fields.entry[0], 'base64').toString(),
      score: hit._score ?? 0,
    }));
  });
}

/** Calls the engine. @throws {EngineUnavailable} in place of the client's own errors that will pass. */
export async function reach<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof errors.ResponseError && !isTemporary(error.statusCode ?? 500)) throw error;
    if (error instanceof errors.ElasticsearchClientError) {
      throw new EngineUnavailable(error.message, { cause: error });
    }
    throw error;
  }
}

/** Statuses that say that the same request may go through later. A 401 or 403 is a wrong key: an operator can mend it. */
function isTemporary(status: number): boolean {
  return status >= 500 || status === 429 || status === 401 || status === 403 || status === 408;
}
