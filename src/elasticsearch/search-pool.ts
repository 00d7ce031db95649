import { Pool } from 'undici';
import type { ElasticsearchAccess } from './elasticsearch.js';
import {
  ConnectionFailedError,
  ElasticsearchUnavailableError,
  isRetryable,
  NodeUnavailableError,
  SearchRefusedError,
  ShardUnavailableError,
} from './elasticsearch-errors.js';
import { exchange } from './exchange.js';
import { RetryBudget } from './retry-budget.js';
import { UNAVAILABLE_STATUSES } from '../util/unavailable-statuses.js';

/**
 * Maximum number of connections per node. It also limits the searches that one replica has in flight on a node.
 * Elasticsearch runs 1.5 searches per processor. Further searches would only wait in its queue while their timeout is
 * running.
 */
export const CONNECTIONS_PER_NODE = 16;

/**
 * Timeouts of the attempts of a search, in milliseconds, by the number of nodes. Clients get a response within two
 * seconds. If one of three nodes hangs, two attempts can fail: one on this node, and one on a node without a copy of
 * the index, which forwards the search to the hanging node. If the index has two copies, the third node has the other
 * copy. The third attempt gets the most time, because all nodes may just be slow. The last attempt gets all remaining
 * time. While the retry budget is empty, every attempt gets all remaining time.
 */
export const ATTEMPT_TIMEOUTS_MS: AttemptTimeouts = { one: [1500], two: [800, 800], more: [500, 500, 800] };

/** Timeouts of the attempts of a search, in milliseconds: with one node, with two nodes, and with more nodes. */
export type AttemptTimeouts = Readonly<Record<'one' | 'two' | 'more', readonly [number, ...number[]]>>;

/** Minimum remaining time for another attempt, in milliseconds. */
const MIN_ATTEMPT_MS = 50;

/** Timeout for opening a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 1500;

/** Maximum number of characters of an unexpected response in the `cause` of an error. */
const MAX_DETAILS = 500;

/** Time for which a failed node is avoided, in milliseconds, if there is another node. */
export const NODE_BACKOFF_MS = 3000;

/** Outcome of one attempt of a search: a response, a temporary failure, or a permanent rejection. */
export type SearchOutcome = 'answered' | 'unavailable' | 'refused';

/** Called after each attempt of a search, with the origin of the node, the outcome and the duration in seconds. */
export type OnSearch = (node: string, outcome: SearchOutcome, seconds: number) => void;

interface SearchPoolOptions {
  onSearch?: OnSearch | undefined;
  /**
   * Timeout of one attempt, in milliseconds. The last attempt also gets the unused time of the others. By default,
   * `attemptTimeoutsMs` applies.
   */
  timeoutMs?: number;
  /**
   * Timeouts of the attempts by the number of nodes, if `timeoutMs` is undefined. The default suits searches that a
   * client waits for.
   */
  attemptTimeoutsMs?: AttemptTimeouts;
  /** Backoff of a node that failed, in milliseconds. */
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
  /** Until this time, in milliseconds since the epoch, the node is avoided. */
  avoidUntil: number;
  /** Number of searches in flight on this node. */
  inFlight: number;
}

/** A search that may be sent to several nodes. */
interface Search<T> {
  path: string;
  body: string;
  opaqueId: string;
  read: (text: string) => T;
}

/**
 * Sends searches to the least busy nodes, with a deadline over all attempts. The Elasticsearch client has no such
 * deadline, and takes 1.6 to 1.9 times the processor time for 50 hits.
 */
export class SearchPool {
  readonly #nodes: Node[];
  /** Timeout of each attempt, in milliseconds. */
  readonly #timeoutsMs: readonly [number, ...number[]];
  readonly #retries = new RetryBudget();
  /** Index of the node that is preferred among equally busy nodes. */
  #first = 0;

  constructor(
    { nodes, apiKey }: ElasticsearchAccess,
    private readonly options: SearchPoolOptions = {},
  ) {
    const { timeoutMs, attemptTimeoutsMs = ATTEMPT_TIMEOUTS_MS } = options;
    const { one, two, more } = attemptTimeoutsMs;
    const usual = nodes.length === 1 ? one : nodes.length === 2 ? two : more;
    this.#timeoutsMs = timeoutMs === undefined ? usual : [timeoutMs, ...usual.slice(1).map(() => timeoutMs)];
    this.#nodes = nodes.map((address) => {
      const { origin, pathname, username, password } = new URL(address);
      const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
      const basic = username === '' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`;
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
      };
    });
  }

  /**
   * Posts newline-delimited JSON. Retries on at most two other nodes if the connection failed, or if the node was
   * unavailable or too slow. Retries after a timeout are limited by a budget. A single node gets a second attempt if
   * the connection failed.
   * @param opaqueId names the request in Elasticsearch's tasks and slow logs.
   * @param read reads the body of the response. If `read` throws a `NodeUnavailableError` or a `ShardUnavailableError`,
   * another node is tried.
   * @returns the result of `read`.
   * @throws {ElasticsearchUnavailableError} for temporary failures.
   * @throws {SearchRefusedError} for permanent failures. Errors of `read` are thrown unchanged.
   */
  async post<T>(path: string, body: string, opaqueId: string, read: (text: string) => T): Promise<T> {
    const search = { path, body, opaqueId, read };
    const tried: Node[] = [];
    const deadline = performance.now() + this.#timeoutsMs.reduce((sum, ms) => sum + ms);
    for (;;) {
      const node = this.#next(tried);
      node.inFlight++;
      try {
        return await this.#send(node, search, tried.length, deadline);
      } catch (error) {
        tried.push(node);
        // Only the first node is avoided, because later nodes may have forwarded the search to it.
        if (tried.length === 1 && error instanceof NodeUnavailableError) this.#avoid(node);
        if (!this.#mayRetry(error, tried.length, deadline)) throw error;
      } finally {
        node.inFlight--;
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#nodes.map(({ pool }) => pool.destroy()));
  }

  #mayRetry(error: unknown, failed: number, deadline: number): boolean {
    if (deadline - performance.now() < MIN_ATTEMPT_MS) return false;
    if (this.#nodes.length === 1) return failed === 1 && error instanceof ConnectionFailedError;
    const mayAnotherRespond = error instanceof NodeUnavailableError || error instanceof ShardUnavailableError;
    return failed < this.#timeoutsMs.length && mayAnotherRespond;
  }

  #avoid(node: Node): void {
    node.avoidUntil = Date.now() + (this.options.nodeBackoffMs ?? NODE_BACKOFF_MS);
  }

  /**
   * The untried node with the fewest searches in flight. An avoided node is chosen only if all untried nodes are
   * avoided. On a node that has just started, a search takes a hundred times as long. Such a node therefore gets few
   * searches at a time.
   */
  #next(tried: readonly Node[]): Node {
    this.#first = (this.#first + 1) % this.#nodes.length;
    const inTurn = [...this.#nodes.slice(this.#first), ...this.#nodes.slice(0, this.#first)];
    const now = Date.now();
    const isAvoided = ({ avoidUntil }: Node) => Number(avoidUntil > now);
    const [best] = inTurn
      .filter((node) => !tried.includes(node))
      .sort((a, b) => isAvoided(a) - isAvoided(b) || a.inFlight - b.inFlight);
    return best ?? (inTurn[0] as Node);
  }

  /**
   * @param earlier number of earlier attempts.
   * @param deadline of all attempts, on the clock of `performance.now()`.
   */
  async #send<T>(
    node: Node,
    { path, body, opaqueId, read }: Search<T>,
    earlier: number,
    deadline: number,
  ): Promise<T> {
    const headers = { ...node.headers, 'x-opaque-id': opaqueId };
    const request = { method: 'POST', path: node.prefix + path, headers, body } as const;
    const began = performance.now();
    const isLast = earlier >= this.#timeoutsMs.length - 1;
    const leftMs = deadline - began;
    const timeoutMs = isLast ? leftMs : Math.min(this.#timeoutsMs[earlier] ?? leftMs, leftMs);
    const extend = (): number => {
      if (earlier === 0) this.#avoid(node);
      return isLast || this.#retries.take() ? 0 : Math.max(0, deadline - performance.now());
    };
    let outcome: SearchOutcome = 'unavailable';
    try {
      const { status, text } = await exchange(node.pool, request, timeoutMs, extend);
      if (status !== 200) {
        const description = `Elasticsearch responded with ${status}`;
        const details = { cause: new Error(text.slice(0, MAX_DETAILS)) };
        // Elasticsearch answers a search with 200 or an error. Any other status below 400 comes from a proxy.
        if (status < 400 || UNAVAILABLE_STATUSES.includes(status))
          throw new NodeUnavailableError(description, details);
        if (isRetryable(status)) throw new ElasticsearchUnavailableError(description, details);
        throw new SearchRefusedError(description, details);
      }
      outcome = 'answered';
      const result = read(text);
      if (performance.now() - began < timeoutMs) this.#retries.earn();
      return result;
    } catch (error) {
      if (error instanceof ElasticsearchUnavailableError) outcome = 'unavailable';
      if (error instanceof SearchRefusedError) outcome = 'refused';
      throw error;
    } finally {
      this.options.onSearch?.(node.origin, outcome, (performance.now() - began) / 1000);
    }
  }
}
