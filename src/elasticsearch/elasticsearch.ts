import {
  BaseConnectionPool,
  Client,
  errors,
  SniffingTransport,
  UndiciConnection,
  type Connection,
  type ConnectionRequestOptions,
  type ConnectionRequestParams,
  type ConnectionRequestResponse,
} from '@elastic/elasticsearch';
import { messageOf } from '../util/error-message.js';
import { isFromElasticsearch, isKeyLookupFailure } from './elasticsearch-errors.js';
import { NODE_BACKOFF_MS } from './search-pool.js';

/** The addresses of Elasticsearch, and the API key. */
export interface ElasticsearchAccess {
  nodes: readonly string[];
  apiKey: string | undefined;
}

/**
 * Timeout of each attempt of a read request, in milliseconds, for one, two, and three or more nodes. With several
 * nodes, all attempts together take at most two seconds. With one node, the client waits one to two seconds before it
 * retries. With three nodes, a read succeeds even if two of the nodes hang.
 */
const READ_TIMEOUTS_MS = [1500, 800, 600] as const;

/**
 * Timeout of one request of a rebuild, in milliseconds. A connection that was dropped silently is replaced within a
 * minute. Longer operations (merging, copying) are started and then polled. If a request times out while it waits for a
 * shard, it is sent again.
 */
const REBUILD_TIMEOUT_MS = 50_000;

/**
 * Time after which an idle connection is closed, in milliseconds. NAT gateways and load balancers drop idle connections
 * later.
 */
const IDLE_MS = 10_000;

/**
 * Creates a client for short reads, with a short timeout. With one node, it retries once, but not after a timeout. With
 * several nodes, it retries on at most two other nodes, also after a timeout.
 */
export function createReadClient(access: ElasticsearchAccess): Client {
  const nodes = Math.min(access.nodes.length, READ_TIMEOUTS_MS.length);
  return createClient(access, 'poll', {
    requestTimeout: READ_TIMEOUTS_MS[nodes - 1] ?? READ_TIMEOUTS_MS[0],
    maxRetries: Math.max(1, nodes - 1),
    ...(nodes > 1 ? { Transport: TimeoutRetryingTransport, ConnectionPool: RoundRobinPool } : {}),
  });
}

/** Creates a client for rebuilds: long timeout, more retries. */
export function createRebuildClient(access: ElasticsearchAccess): Client {
  return createClient(access, 'rebuild', { requestTimeout: REBUILD_TIMEOUT_MS, maxRetries: 5 });
}

/** Creates a client for an administrator at a terminal. Ignores credentials in the URLs of the nodes. */
export function createAdministratorClient(
  nodes: readonly string[],
  auth: { username: string; password: string },
): Client {
  // The client would prefer credentials in the URL to `auth`.
  const bare = nodes.map((node) => Object.assign(new URL(node), { username: '', password: '' }).href);
  return createClient({ nodes: bare, apiKey: undefined }, 'keys', { auth, maxRetries: 0 });
}

/**
 * Describes in one line that Elasticsearch rejects the credentials in a variable, or that they lack a privilege. The
 * description contains neither the credentials nor names of nodes or indices. Returns undefined for other errors.
 */
export function describeAuthError(error: unknown, variable: string): string | undefined {
  const response =
    error instanceof Error && error.cause instanceof errors.ResponseError ? error.cause : error;
  if (!(response instanceof errors.ResponseError)) return undefined;
  if (response.statusCode === 401) return `Elasticsearch does not accept ${variable}`;
  const [, action] = /^action \[([^\]]+)\] is unauthorized/.exec(errorIn(response).reason ?? '') ?? [];
  return action === undefined ? undefined : `${variable} does not allow ${action}`;
}

/** Describes in one line why Elasticsearch does not respond. Returns undefined for other errors. */
export function describeConnectionError(error: unknown): string | undefined {
  if (!(error instanceof errors.ConnectionError || error instanceof errors.TimeoutError)) return undefined;
  // OpenSSL's messages end with a newline.
  return `Elasticsearch does not respond at ELASTICSEARCH_URL (${error.message.trim()}): start it, or correct the address`;
}

/**
 * The error in a response of Elasticsearch. An empty object if the body has no error, for example after a HEAD request.
 */
export function errorIn({ body }: errors.ResponseError): { type?: unknown; reason?: string } {
  return (body as { error?: { type?: unknown; reason?: string } } | undefined)?.error ?? {};
}

/** @param opaqueId identifies the client's requests in Elasticsearch's tasks and slow logs. */
function createClient(
  { nodes, apiKey }: ElasticsearchAccess,
  opaqueId: string,
  options: ConstructorParameters<typeof Client>[0],
): Client {
  return new Client({
    nodes: [...nodes],
    ...(apiKey === undefined ? {} : { auth: { apiKey } }),
    enableMetaHeader: false,
    agent: { keepAliveTimeout: IDLE_MS },
    headers: { 'x-opaque-id': opaqueId },
    Connection: ElasticsearchConnection,
    ...options,
  });
}

/**
 * Something other than Elasticsearch responded. The client's transport then tries another node. If it gives up, this
 * error is the `cause` of the error that it throws.
 */
export class NotElasticsearchError extends errors.ConnectionError {
  constructor(readonly status: number) {
    super(`something other than Elasticsearch responded with ${status}`);
  }
}

/** Status for a request that is too large for Elasticsearch or a proxy. Such a request is not retried. */
const TOO_LARGE = 413;

/**
 * Treats two kinds of responses as failures of the node. First, responses that are not from Elasticsearch: a proxy's
 * 404 does not mean that an index is absent. Second, responses of a node that cannot look up API keys.
 */
class ElasticsearchConnection extends UndiciConnection {
  /** Why the last connection could not be opened. */
  #failure: Error | undefined;

  constructor(options: ConstructorParameters<typeof UndiciConnection>[0]) {
    super(options);
    this.pool.on('connectionError', (_origin, _targets, error) => (this.#failure = error));
  }

  override async request(
    params: ConnectionRequestParams,
    options: ConnectionRequestOptions,
  ): Promise<ConnectionRequestResponse>;
  override async request(params: ConnectionRequestParams, options: never): Promise<never>;
  override async request(params: ConnectionRequestParams, options: ConnectionRequestOptions) {
    const response = await super.request(params, options).catch((error: unknown) => {
      // The client keeps only the message of an error. The message of an AggregateError (host with several addresses)
      // is empty.
      if ((error as Error).message !== '' || this.#failure === undefined) throw error;
      throw new errors.ConnectionError(messageOf(this.#failure));
    });
    const { statusCode, headers, body } = response;
    const text = String(body);
    if (isKeyLookupFailure(statusCode, text))
      throw new errors.ConnectionError('it cannot look up API keys at the moment');
    if (statusCode === TOO_LARGE || isFromElasticsearch(statusCode, headers, text)) return response;
    throw new NotElasticsearchError(statusCode);
  }
}

/**
 * Retries requests that timed out. The client's transport has an option for this, but the client does not pass it on.
 */
class TimeoutRetryingTransport extends SniffingTransport {
  constructor(options: ConstructorParameters<typeof SniffingTransport>[0]) {
    super({ ...options, retryOnTimeout: true });
  }
}

/**
 * Uses the nodes in turn. Avoids a failed node for a while, so that a retry reaches another node. The client's own pool
 * may choose the failed node again.
 */
class RoundRobinPool extends BaseConnectionPool {
  #first = 0;
  /** For each failed node, the end of its backoff, in milliseconds since the epoch. */
  readonly #avoidUntil = new Map<Connection, number>();

  override getConnection(): Connection | null {
    this.#first = (this.#first + 1) % this.size;
    const now = Date.now();
    const inTurn = [...this.connections.slice(this.#first), ...this.connections.slice(0, this.#first)];
    return inTurn.find((node) => (this.#avoidUntil.get(node) ?? 0) <= now) ?? inTurn[0] ?? null;
  }

  override markDead(node: Connection): this {
    this.#avoidUntil.set(node, Date.now() + NODE_BACKOFF_MS);
    return this;
  }

  override markAlive(node: Connection): this {
    this.#avoidUntil.delete(node);
    return this;
  }
}
