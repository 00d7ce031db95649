import { parseJson } from '../util/decode.js';
import {
  ElasticsearchUnavailableError,
  IndexClosedError,
  IndexGoneError,
  NodeUnavailableError,
  SearchRefusedError,
  ShardUnavailableError,
} from './elasticsearch-errors.js';

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

/** Each node prefers its own copy of the index, so a hanging node does not affect searches on other nodes. */
const HEADER = { preference: '_local' };

/**
 * @param indices one index, or several that are searched together.
 * @param concurrency maximum number of concurrent searches; with several indices, also the maximum number of shards per
 * node that one search reads at a time. By default, Elasticsearch's own limits apply.
 */
export function msearchRequest(
  indices: string | readonly string[],
  bodies: SearchBody[],
  concurrency?: number,
): { path: string; body: string } {
  const isOne = typeof indices === 'string';
  const searches = concurrency === undefined ? '' : `&max_concurrent_searches=${concurrency}`;
  const shards = concurrency === undefined || isOne ? '' : `&max_concurrent_shard_requests=${concurrency}`;
  // Several indices are named in the body, because many names would not fit into the request line.
  const [index, header] = isOne ? [`/${indices}`, HEADER] : ['', { ...HEADER, index: indices }];
  const before = JSON.stringify(header);
  return {
    path: `${index}/_msearch?filter_path=${FILTER_PATH}${searches}${shards}`,
    body: bodies.map((body) => `${before}\n${JSON.stringify(body)}\n`).join(''),
  };
}

/** The clause that matches names equal to the query. Its hits have rank 0, other hits a higher rank. */
export const EXACT_CLAUSE = 'exact';

export interface Hits {
  /** The entries in base64, as stored in the index (by `encodeEntry`, or by `encodeRecord` for changes). */
  entries: string[];
  /** Number of entries whose name equals the query. These entries come first. */
  exact: number;
  /** Number of all matches, if the search has `track_total_hits`. Above that number, it is a lower bound. */
  total?: number | undefined;
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
  hits?: { hits?: Hit[]; total?: { value: number } };
}

/** `fields` is the position in `entries`, or has the entry itself if `cutOutEntries` has not replaced it. */
interface Hit {
  fields: number | { entry: [base64: string] };
  matched_queries?: string[];
}

/** The text before and after the entry of a hit, as Elasticsearch writes it. */
const BEFORE_ENTRY = '"fields":{"entry":["';
const AFTER_ENTRY = '"]}';

/** Status of a search that an overloaded node rejected. */
const TOO_MANY = 429;

/**
 * @throws {NodeUnavailableError} if the response is not complete.
 * @throws {IndexGoneError} if there is no such index.
 * @throws {ShardUnavailableError} if a shard failed or timed out. The searched node may have been suspended, or may not
 * have noticed yet that another node is gone.
 * @throws {ElasticsearchUnavailableError} for other temporary failures.
 * @throws {SearchRefusedError} for permanent failures.
 */
export function parseResponse(text: string, searches: number, index: string): Hits[] {
  const { entries, rest } = cutOutEntries(text);
  const { responses } = (parseJson(rest) ?? {}) as { responses?: SearchResponse[] };
  if (responses?.length !== searches) throw incomplete();
  return responses.map(({ status, error, timed_out, _shards, hits }) => {
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
      entries: found.map(({ fields }) =>
        typeof fields === 'number' ? (entries[fields] as string) : fields.entry[0],
      ),
      exact: found.filter((hit) => hit.matched_queries?.includes(EXACT_CLAUSE)).length,
      ...(hits?.total !== undefined && { total: hits.total.value }),
    };
  });
}

/**
 * Replaces each entry in the text with its position in `entries`. Parsing the whole text as JSON took half of the
 * service's time for an uncached search. Parsing the rest takes a third as long. Base64 needs no escapes in JSON, so
 * each text that is cut out is an entry.
 */
function cutOutEntries(text: string): { entries: string[]; rest: string } {
  const [start = '', ...parts] = text.split(BEFORE_ENTRY);
  const entries: string[] = [];
  let rest = start;
  for (const part of parts) {
    const end = part.indexOf(AFTER_ENTRY);
    if (end === -1) throw incomplete();
    rest += `"fields":${entries.length}${part.slice(end + AFTER_ENTRY.length)}`;
    entries.push(part.slice(0, end));
  }
  return { entries, rest };
}

/** The error for an incomplete response: a proxy may have truncated or compressed it. */
function incomplete(): NodeUnavailableError {
  return new NodeUnavailableError('the response of Elasticsearch is not complete');
}
