import { Pool, type Dispatcher } from 'undici';
import { credentialsIn, type ElasticsearchAccess } from './elasticsearch.js';
import {
  ConnectionFailedError,
  distrustReason,
  ElasticsearchUnavailableError,
  NodeUnavailableError,
  SearchRefusedError,
  ShardUnavailableError,
} from './elasticsearch-errors.js';
import { msearchRequest, parseResponse, type Hits, type SearchBody } from './msearch.js';

/**
 * Also limits the searches that one replica has in flight on a node. Elasticsearch runs 1.5 searches per processor.
 * Further searches would only wait in its queue while their timeout is running.
 */
export const CONNECTIONS_PER_NODE = 16;

/** Timeout of a try, in milliseconds: a search is sent to another node once more, if there are several. */
export const ONE_NODE_TIMEOUT_MS = 1600;
const SEVERAL_NODES_TIMEOUT_MS = 800;

const CONNECT_TIMEOUT_MS = 1500;

/** Time for which a failed node is avoided, in milliseconds, if there is another node. */
const NODE_BACKOFF_MS = 3000;

/** Maximum number of characters of an unexpected response in the `cause` of an error. */
const MAX_DETAILS = 500;

/** Statuses below 500 of searches that may succeed later. An operator can correct the key (401, 403). */
const TEMPORARY_STATUSES = [401, 403, 429];

/** Outcome of one try of a search: a response, a temporary failure, or a permanent rejection. */
export type SearchOutcome = 'answered' | 'unavailable' | 'refused';

interface SearchPoolOptions {
  /** Called after each try of a search, with the origin of the node, the outcome and the duration in seconds. */
  onSearch?: ((node: string, outcome: SearchOutcome, seconds: number) => void) | undefined;
  /** Timeout of one try, in milliseconds. The default suits searches that a client waits for. */
  timeoutMs?: number;
  nodeBackoffMs?: number;
}

interface Node {
  /** Origin of the node's URL, such as `http://127.0.0.1:9200`. */
  origin: string;
  pool: Pool;
  /** Path of the node's URL. Usually empty, but a proxy may need a path such as `/search`. */
  prefix: string;
  /** Headers of each request. undici does not send headers that are undefined. */
  headers: Record<string, string | undefined>;
  /** Until this time, on the clock of `performance.now()`, the node is avoided. */
  avoidUntil: number;
  inFlight: number;
  /** Position of its latest search among all searches of the pool. */
  lastSearch: number;
}

/**
 * Sends searches to the least busy nodes. Elasticsearch's client takes 1.6 to 1.9 times the processor time for 50 hits.
 */
export class SearchPool {
  readonly #nodes: Node[];
  readonly #timeoutMs: number;
  #searches = 0;

  constructor(
    { nodes, apiKey }: ElasticsearchAccess,
    private readonly options: SearchPoolOptions = {},
  ) {
    this.#timeoutMs =
      options.timeoutMs ?? (nodes.length === 1 ? ONE_NODE_TIMEOUT_MS : SEVERAL_NODES_TIMEOUT_MS);
    this.#nodes = nodes.map((address) => {
      const { origin, pathname } = new URL(address);
      const { username, password } = credentialsIn(address) ?? {};
      const basic = username && `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
      const authorization = apiKey === undefined ? basic : `ApiKey ${apiKey}`;
      return {
        origin,
        pool: new Pool(origin, {
          connections: CONNECTIONS_PER_NODE,
          connect: { timeout: CONNECT_TIMEOUT_MS },
          // `exchange` has its own timeout, because undici's timeouts have a resolution of half a second.
          headersTimeout: 0,
          bodyTimeout: 0,
        }),
        prefix: pathname.replace(/\/$/, ''),
        headers: { 'content-type': 'application/x-ndjson', authorization },
        avoidUntil: 0,
        inFlight: 0,
        lastSearch: 0,
      };
    });
  }

  /**
   * Runs searches in one request. If a node fails, tries another node once. A single node gets a second try if the
   * connection failed.
   * @param opaqueId names the request in Elasticsearch's tasks and slow logs. Other parameters as for `msearchRequest`.
   * @throws {IndexGoneError} if there is no such index.
   * @throws {ElasticsearchUnavailableError} if Elasticsearch does not respond in time, a shard failed or timed out, or
   * the index is closed.
   * @throws {SearchRefusedError} for permanent failures.
   */
  async search(
    indices: string | readonly string[],
    bodies: SearchBody[],
    opaqueId: string,
    concurrency?: number,
  ): Promise<Hits[]> {
    const request = msearchRequest(indices, bodies, concurrency);
    const read = (text: string) => parseResponse(text, bodies.length, String(indices));
    const first = this.#leastBusy();
    try {
      return await this.#send(first, request, opaqueId, read);
    } catch (error) {
      const mayRetry =
        this.#nodes.length === 1
          ? error instanceof ConnectionFailedError
          : error instanceof NodeUnavailableError || error instanceof ShardUnavailableError;
      if (!mayRetry) throw error;
      return this.#send(this.#leastRecentlyFailed(first), request, opaqueId, read);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#nodes.map(({ pool }) => pool.destroy()));
  }

  /**
   * On a node that has just started, a search takes a hundred times as long. Such a node gets few searches at a time.
   */
  #leastBusy(): Node {
    const now = performance.now();
    const isAvoided = ({ avoidUntil }: Node) => Number(avoidUntil > now);
    return this.#nodes.reduce((best, node) => {
      const order =
        isAvoided(node) - isAvoided(best) ||
        node.inFlight - best.inFlight ||
        node.lastSearch - best.lastSearch;
      return order < 0 ? node : best;
    });
  }

  /**
   * While one of three nodes hangs, a node without a copy of the index may forward searches to it and fails, too. The
   * third node, whose last failure was the longest ago, does not fail.
   */
  #leastRecentlyFailed(failed: Node): Node {
    const [best = failed] = this.#nodes
      .filter((node) => node !== failed)
      .sort((a, b) => a.avoidUntil - b.avoidUntil || a.inFlight - b.inFlight);
    return best;
  }

  /** @throws {NodeUnavailableError} if the node failed. The node is then avoided for a while. */
  async #send<T>(
    node: Node,
    { path, body }: { path: string; body: string },
    opaqueId: string,
    read: (text: string) => T,
  ): Promise<T> {
    const headers = { ...node.headers, 'x-opaque-id': opaqueId };
    const request = { method: 'POST', path: node.prefix + path, headers, body } as const;
    const began = performance.now();
    let outcome: SearchOutcome = 'answered';
    node.inFlight++;
    node.lastSearch = ++this.#searches;
    try {
      const { status, text } = await exchange(node.pool, request, this.#timeoutMs);
      if (status !== 200) throw failureOf(status, text);
      return read(text);
    } catch (error) {
      if (error instanceof ElasticsearchUnavailableError) outcome = 'unavailable';
      if (error instanceof SearchRefusedError) outcome = 'refused';
      if (error instanceof NodeUnavailableError)
        node.avoidUntil = performance.now() + (this.options.nodeBackoffMs ?? NODE_BACKOFF_MS);
      throw error;
    } finally {
      node.inFlight--;
      this.options.onSearch?.(node.origin, outcome, (performance.now() - began) / 1000);
    }
  }
}

/** The error for a response to all searches of a request. Elasticsearch answers a search with 200 or an error. */
function failureOf(status: number, text: string): Error {
  const description = `Elasticsearch responded with ${status}`;
  const details = { cause: new Error(text.slice(0, MAX_DETAILS)) };
  if (status < 400 || status >= 500) return new NodeUnavailableError(description, details);
  const Type = TEMPORARY_STATUSES.includes(status) ? ElasticsearchUnavailableError : SearchRefusedError;
  return new Type(description, details);
}

/**
 * Takes a sixth of the time of undici's `request`, because it creates no streams, and no promises for streams.
 * @throws {NodeUnavailableError} if no complete response of Elasticsearch arrives in time.
 */
function exchange(
  pool: Pool,
  request: Dispatcher.DispatchOptions,
  timeoutMs: number,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    let headers: Readonly<Record<string, unknown>> = {};
    let controller: Dispatcher.DispatchController | undefined;
    let expired: NodeUnavailableError | undefined;
    let status = 0;
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => {
      expired = new NodeUnavailableError(`no response within ${timeoutMs} ms`);
      reject(expired);
      controller?.abort(expired);
    }, timeoutMs);
    pool.dispatch(request, {
      onRequestStart: (started) => {
        controller = started;
        // The request timed out while it waited for a connection.
        if (expired !== undefined) controller.abort(expired);
      },
      onResponseStart: (_controller, statusCode, received) => {
        status = statusCode;
        headers = received;
      },
      onResponseData: (_controller, chunk) => {
        chunks.push(chunk);
      },
      onResponseEnd: () => {
        clearTimeout(timer);
        const text = Buffer.concat(chunks).toString();
        const distrusted = distrustReason(status, headers, text);
        if (distrusted === undefined) resolve({ status, text });
        else reject(new NodeUnavailableError(distrusted));
      },
      onResponseError: (_controller, error) => {
        clearTimeout(timer);
        reject(new ConnectionFailedError('the connection failed', { cause: error }));
      },
    });
  });
}
