import {
  ElasticsearchUnavailableError,
  IndexClosedError,
  IndexGoneError,
  NodeUnavailableError,
  SearchRefusedError,
  ShardUnavailableError,
} from './elasticsearch-errors.js';

/** Name of the clause that matches names equal to the query: it separates rank 0 from rank 1. */
export const EXACT = 'exact';

/** The hits of one search. */
export interface Hits {
  /** In base64, as stored in the index (`encodeEntry`). */
  entries: string[];
  /** Number of exact names, which come first. */
  exact: number;
}

interface SearchError {
  type: string;
  reason: string;
}

interface SearchResponse {
  status: number;
  error?: SearchError & { root_cause?: SearchError[]; index?: string };
  timed_out?: boolean;
  _shards?: { failed: number };
  hits?: { hits?: { fields: { entry: [base64: string] }; matched_queries?: string[] }[] };
}

/** Status of a search that a busy node has not begun. */
const TOO_MANY = 429;

/**
 * The hits of each search in a response.
 * @throws {NodeUnavailableError} if it is not complete.
 * @throws {IndexGoneError} if there is no such index.
 * @throws {ShardUnavailableError} if a shard failed or timed out: the node may not have noticed yet that another one is
 * gone, or it was suspended, which counts as time that the search took.
 * @throws {ElasticsearchUnavailableError} for other temporary failures, {SearchRefusedError}.
 */
export function parseResponse(text: string, searches: number, index: string): Hits[] {
  return responsesIn(text, searches).map(({ status, error, timed_out, _shards, hits }) => {
    if (error?.type === 'index_not_found_exception') throw new IndexGoneError(error.index ?? index);
    if (error?.type === 'index_closed_exception') throw new IndexClosedError(error.index ?? index);
    if (error !== undefined) {
      const { type, reason } = error.root_cause?.[0] ?? error;
      const description = `Elasticsearch could not search: ${type}`;
      const details = { cause: new Error(reason) };
      if (status >= 500) throw new ShardUnavailableError(description, details);
      if (status === TOO_MANY) throw new ElasticsearchUnavailableError(description, details);
      throw new SearchRefusedError(description, details);
    }
    if (timed_out !== false || _shards?.failed !== 0) {
      throw new ShardUnavailableError('a shard failed or timed out');
    }
    const found = hits?.hits ?? [];
    return {
      entries: found.map((hit) => hit.fields.entry[0]),
      exact: found.filter((hit) => hit.matched_queries?.includes(EXACT)).length,
    };
  });
}

/** @throws {NodeUnavailableError} unless there is a response for each search: a proxy may have truncated or compressed them. */
function responsesIn(text: string, searches: number): SearchResponse[] {
  const { responses } = parse(text) ?? {};
  if (responses?.length === searches) return responses;
  throw new NodeUnavailableError('the response of Elasticsearch is not complete');
}

function parse(text: string): { responses?: SearchResponse[] } | null {
  try {
    return JSON.parse(text) as { responses?: SearchResponse[] } | null;
  } catch {
    return null;
  }
}
