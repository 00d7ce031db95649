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
 * Maximum number of connections per node, and therefore of searches that one replica has in flight there. Elasticsearch
 * runs 1.5 searches per processor. Further searches would only wait in its queue while their timeout is running.
 */
export const CONNECTIONS_PER_NODE = 16;

/**
 * Timeouts of the attempts of a search, in milliseconds, by the number of nodes: clients get a response within two
 * seconds. If a node hangs, two attempts can fail: a node without a copy of the index may forward the search to the
 * hanging node. The third node then has a copy. The third attempt gets the most time, because all nodes may just be
 * slow. The last attempt gets all remaining time. While the retry budget is empty, every attempt gets all remaining
 * time.
 */
export const ATTEMPT_TIMEOUTS_MS: AttemptTimeouts = { one: [1500], two: [800, 800], more: [500, 500, 800] };

/** Timeouts of the attempts of a search, in milliseconds, with one, two, and three or more nodes. */
export type AttemptTimeouts = Readonly<Record<'one' | 'two' | 'more', readonly [number, ...number[]]>>;

/** Minimum remaining time for another attempt, in milliseconds. */
const MIN_ATTEMPT_MS = 50;

/** Timeout of a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 1500;

/** Characters of an unexpected response that are logged. */
const MAX_DETAILS = 500;

/** Time for which a failed node is avoided, in milliseconds, if there is another node. */
export const NODE_BACKOFF_MS = 3000;

/** Outcome of a search: a response, a temporary failure, or a permanent rejection. */
export type SearchOutcome = 'answered' | 'unavailable' | 'refused';

/** Called with every search that was sent to a node, and its duration in seconds. */
export type OnSearch = (node: string, outcome: SearchOutcome, seconds: number) => void;

interface SearchPoolOptions {
  onSearch?: OnSearch | undefined;
  /**
   * Timeout of one attempt, in milliseconds. The last attempt also gets the unused time of the others. The default
   * suits searches that a client waits for.
   */
  timeoutMs?: number;
  /** Timeouts by the number of nodes, for searches that a client waits for. */
  attemptTimeoutsMs?: AttemptTimeouts;
  /** Backoff of a node that failed, in milliseconds. */
  nodeBackoffMs?: number;
}

interface Node {
  /** Such as `http://127.0.0.1:9200`. */
  origin: string;
  pool: Pool;
  /** Path of the address, such as `/search` behind a proxy; usually empty. */
  prefix: string;
  /** undici does not send undefined headers. */
  headers: Record<string, string | undefined>;
  /** End of the backoff, in milliseconds since the epoch. */
  avoidUntil: number;
  /** Searches in flight on this node. */
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
          // `exchange` has its own timeout: undici's timeouts have a resolution of half a second.
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
   * @param read reads the body of the response; if it throws a `ShardUnavailableError`, another node is tried.
   * @returns the result of `read`.
   * @throws {ElasticsearchUnavailableError} for temporary failures, {SearchRefusedError}, and what `read` throws.
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
        // Later nodes are not avoided: they may fail only because of the first one.
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
   * The untried node with the fewest searches in flight; an avoided node only if there is no other. In a node that has
   * just started, a search takes a hundred times as long, so the node gets few searches at a time.
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
   * @param earlier number of nodes that were tried before.
   * @param deadline of all attempts, as `performance.now()`.
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
        // Elasticsearch answers a search with 200 or an error: another status below 400 comes from a proxy.
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
