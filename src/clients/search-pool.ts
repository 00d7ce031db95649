import { Pool, type Dispatcher } from 'undici';
import type { ElasticsearchAccess } from './elasticsearch.js';

/**
 * Connections to each node that are kept open, and so the searches that one replica has in flight there. Elasticsearch
 * runs one and a half for each of its processors: more would only wait inside it, where their time-out runs already.
 */
export const CONNECTIONS_PER_NODE = 16;

/** Timeout of a search, in milliseconds: clients get a response within two seconds. */
const TIMEOUT_MS = 1500;
/** The same if there is another node, which then gets as long. */
const FAILOVER_TIMEOUT_MS = 800;

/** Backoff of a node that failed, in milliseconds, as long as there is another. */
const NODE_BACKOFF_MS = 3000;

/** Elasticsearch cannot be reached, or cannot answer at the moment. */
export class EngineUnavailableError extends Error {
  override readonly name = 'EngineUnavailableError';
}

/** A node that starts, or has no master, or a proxy before it. Not 429: a node that is busy is not helped by more. */
export const RETRYABLE_STATUSES = [502, 503, 504];

/** What became of a search that was sent to a node: answered, not for now, or not ever. */
export type SearchOutcome = 'answered' | 'unavailable' | 'refused';

/** Called with every search that was sent to a node, and its duration in seconds. */
export type OnSearch = (node: string, outcome: SearchOutcome, seconds: number) => void;

interface SearchPoolOptions {
  onSearch?: OnSearch | undefined;
  /** Timeout of one attempt, in milliseconds; by default that of a search which a client waits for. */
  timeoutMs?: number;
}

/** This node did not answer, or not in time. */
class NodeUnavailableError extends EngineUnavailableError {}

interface Node {
  /** Such as `http://127.0.0.1:9200`. */
  origin: string;
  pool: Pool;
  /** Of the address, such as `/search` behind a proxy; empty as a rule. */
  prefix: string;
  headers: Record<string, string>;
  /** Until when it is left alone, in milliseconds since the epoch. */
  avoidUntil: number;
}

/**
 * Sends searches to the nodes in turn and hands back the text of the answer, with as little in between as can be: for
 * the same request the Elasticsearch client takes three times the processor time, most of it for parsing what is
 * spliced, not read, here.
 */
export class SearchPool {
  readonly #nodes: Node[];
  readonly #timeoutMs: number;
  readonly #onSearch: OnSearch;
  #turn = 0;

  constructor(
    { nodes, apiKey }: ElasticsearchAccess,
    { onSearch = () => undefined, timeoutMs }: SearchPoolOptions = {},
  ) {
    this.#onSearch = onSearch;
    this.#timeoutMs = timeoutMs ?? (nodes.length > 1 ? FAILOVER_TIMEOUT_MS : TIMEOUT_MS);
    this.#nodes = nodes.map((address) => {
      const { origin, pathname, username, password } = new URL(address);
      const basic = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString(
        'base64',
      );
      const authorization =
        apiKey !== undefined ? `ApiKey ${apiKey}` : username === '' ? undefined : `Basic ${basic}`;
      return {
        origin,
        pool: new Pool(origin, {
          connections: CONNECTIONS_PER_NODE,
          connect: { timeout: TIMEOUT_MS },
          // `exchange` has a clock of its own: undici's goes by half seconds.
          headersTimeout: 0,
          bodyTimeout: 0,
        }),
        prefix: pathname.replace(/\/$/, ''),
        headers: {
          'content-type': 'application/x-ndjson',
          ...(authorization === undefined ? {} : { authorization }),
        },
        avoidUntil: 0,
      };
    });
  }

  /**
   * Posts newline-delimited JSON. What failed for want of a connection is sent once more, to the next node; and what a
   * node could not answer, or not in time, where there is another.
   * @param opaqueId names the request in Elasticsearch's tasks and slow logs.
   * @returns the body of the answer.
   * @throws {EngineUnavailableError} for failures that will pass, {Error} for requests that the engine refuses.
   */
  async post(path: string, body: string, opaqueId: string): Promise<string> {
    const node = this.#next();
    return this.#send(node, path, body, opaqueId).catch((error: unknown) => {
      const elsewhere = error instanceof NodeUnavailableError && this.#nodes.length > 1;
      if (!isConnectionLost(error) && !elsewhere) throw asUnavailable(error);
      node.avoidUntil = Date.now() + NODE_BACKOFF_MS;
      return this.#send(this.#next(), path, body, opaqueId).catch((again: unknown) => {
        throw asUnavailable(again);
      });
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#nodes.map(({ pool }) => pool.destroy()));
  }

  #next(): Node {
    const count = this.#nodes.length;
    this.#turn = (this.#turn + 1) % count;
    if (count > 1) {
      const now = Date.now();
      for (let step = 0; step < count; step++) {
        const node = this.#nodes[(this.#turn + step) % count] as Node;
        if (node.avoidUntil <= now) return node;
      }
    }
    return this.#nodes[this.#turn] as Node;
  }

  async #send(node: Node, path: string, body: string, opaqueId: string): Promise<string> {
    const headers = { ...node.headers, 'x-opaque-id': opaqueId };
    const request = { method: 'POST', path: node.prefix + path, headers, body } as const;
    const began = performance.now();
    let outcome: SearchOutcome = 'unavailable';
    try {
      const { status, text } = await exchange(node.pool, request, this.#timeoutMs);
      if (status === 200) {
        outcome = 'answered';
        return text;
      }
      const description = `Elasticsearch answered ${status}: ${text.slice(0, 500)}`;
      if (RETRYABLE_STATUSES.includes(status)) throw new NodeUnavailableError(description);
      if (isRetryable(status)) throw new EngineUnavailableError(description);
      outcome = 'refused';
      throw new Error(description);
    } finally {
      this.#onSearch(node.origin, outcome, (performance.now() - began) / 1000);
    }
  }
}

/**
 * undici's `request` with the text of the body, but for the streams and their promises: a sixth of its time.
 * @throws {NodeUnavailableError} without a whole answer after `timeoutMs`.
 */
function exchange(
  pool: Pool,
  request: Dispatcher.DispatchOptions,
  timeoutMs: number,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    let expired: NodeUnavailableError | undefined;
    let status = 0;
    const chunks: Buffer[] = [];
    const late = setTimeout(() => {
      expired = new NodeUnavailableError(`no answer within ${timeoutMs} ms`);
      controller?.abort(expired);
      reject(expired);
    }, timeoutMs);
    pool.dispatch(request, {
      onRequestStart: (started) => {
        controller = started;
        // It waited for a connection all the time.
        if (expired !== undefined) controller.abort(expired);
      },
      onResponseStart: (_controller, statusCode) => {
        status = statusCode;
      },
      onResponseData: (_controller, chunk) => {
        chunks.push(chunk);
      },
      onResponseEnd: () => {
        clearTimeout(late);
        resolve({ status, text: Buffer.concat(chunks).toString() });
      },
      onResponseError: (_controller, error) => {
        clearTimeout(late);
        reject(error);
      },
    });
  });
}

/** Statuses that say that the same request may go through later. A 401 or 403 is a wrong key: an operator can mend it. */
export function isRetryable(status: number): boolean {
  return status >= 500 || status === 429 || status === 401 || status === 403 || status === 408;
}

/** A connection that was refused or broke before there was an answer; not one that is merely slow. */
function isConnectionLost(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ECONNREFUSED' || code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET';
}

function asUnavailable(error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  const ofTransport = typeof code === 'string' && (code.startsWith('E') || code.startsWith('UND_ERR_'));
  return ofTransport ? new EngineUnavailableError(message, { cause: error }) : error;
}
