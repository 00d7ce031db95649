import {
  Client,
  errors,
  SniffingTransport,
  UndiciConnection,
  type ConnectionRequestOptions,
  type ConnectionRequestParams,
  type ConnectionRequestResponse,
} from '@elastic/elasticsearch';
import { distrustReason } from './elasticsearch-errors.js';

/** The addresses of Elasticsearch, and the API key. Without a key, the credentials in the addresses apply. */
export interface ElasticsearchAccess {
  nodes: readonly string[];
  apiKey: string | undefined;
}

/** The user and the password in an address, decoded; undefined if it has no user. */
export function credentialsIn(address: string): { username: string; password: string } | undefined {
  const { username, password } = new URL(address);
  if (username === '') return undefined;
  return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
}

/** Timeout of each of the two tries of a read, in milliseconds. Users wait at most two seconds. */
const READ_TIMEOUT_MS = 800;

/**
 * A connection that was dropped silently is replaced within a minute. Longer operations (merging, copying) are started
 * and then polled. If a request times out while it waits for a shard, it is sent again.
 */
const REBUILD_TIMEOUT_MS = 50_000;

/** Idle connections are closed after this time. NAT gateways and load balancers drop them later. */
const IDLE_MS = 10_000;

/** Creates a client for short reads. It tries twice, if possible on different nodes, also after a timeout. */
export function createReadClient(access: ElasticsearchAccess): Client {
  const options = { requestTimeout: READ_TIMEOUT_MS, maxRetries: 1, Transport: TimeoutRetryingTransport };
  return createClient(access, 'poll', options);
}

export function createRebuildClient(access: ElasticsearchAccess): Client {
  return createClient(access, 'rebuild', { requestTimeout: REBUILD_TIMEOUT_MS, maxRetries: 5 });
}

/** Creates a client for an administrator at a terminal. Ignores credentials in the URLs of the nodes. */
export function createAdministratorClient(
  nodes: readonly string[],
  auth: { username: string; password: string },
): Client {
  return createClient({ nodes, apiKey: undefined }, 'keys', { auth, maxRetries: 0 });
}

/** For rejected credentials and missing privileges: one line without credentials and names of nodes or indices. */
export function describeAuthError(error: unknown, variable: string): string | undefined {
  const response =
    error instanceof Error && error.cause instanceof errors.ResponseError ? error.cause : error;
  if (!(response instanceof errors.ResponseError)) return undefined;
  if (response.statusCode === 401) return `Elasticsearch does not accept ${variable}`;
  const [, action] = /^action \[([^\]]+)\] is unauthorized/.exec(errorIn(response).reason ?? '') ?? [];
  return action === undefined ? undefined : `${variable} does not allow ${action}`;
}

/** Whether an error of the client means that Elasticsearch does not respond. */
export function isSilent(error: unknown): error is Error {
  return error instanceof errors.ConnectionError || error instanceof errors.TimeoutError;
}

/** Describes in one line why Elasticsearch does not respond. Returns undefined for other errors. */
export function describeConnectionError(error: unknown): string | undefined {
  if (!isSilent(error)) return undefined;
  // OpenSSL's messages end with a newline.
  return `Elasticsearch does not respond at ELASTICSEARCH_URL (${error.message.trim()}): start it, or correct the address`;
}

/** Empty if the body has no error, for example after a HEAD request. */
export function errorIn({ body }: errors.ResponseError): { type?: unknown; reason?: string } {
  return (body as { error?: { type?: unknown; reason?: string } } | undefined)?.error ?? {};
}

/** @param opaqueId identifies the client's requests in Elasticsearch's tasks and slow logs. */
function createClient(
  { nodes, apiKey }: ElasticsearchAccess,
  opaqueId: string,
  options: ConstructorParameters<typeof Client>[0],
): Client {
  const credentials = nodes.map(credentialsIn).find((found) => found !== undefined);
  const auth = apiKey === undefined ? credentials : { apiKey };
  return new Client({
    // Without credentials: the client's errors contain the addresses.
    nodes: nodes.map((node) => Object.assign(new URL(node), { username: '', password: '' }).href),
    ...(auth && { auth }),
    enableMetaHeader: false,
    agent: { keepAliveTimeout: IDLE_MS },
    headers: { 'x-opaque-id': opaqueId },
    Connection: CheckedConnection,
    ...options,
  });
}

/** Treats untrustworthy responses as failed connections, so that the client tries another node. */
class CheckedConnection extends UndiciConnection {
  override async request(
    params: ConnectionRequestParams,
    options: ConnectionRequestOptions,
  ): Promise<ConnectionRequestResponse>;
  override async request(params: ConnectionRequestParams, options: never): Promise<never>;
  override async request(params: ConnectionRequestParams, options: ConnectionRequestOptions) {
    const response = await super.request(params, options);
    const distrusted = distrustReason(response.statusCode, response.headers, String(response.body));
    if (distrusted !== undefined) throw new errors.ConnectionError(distrusted);
    return response;
  }
}

/** Retries requests that timed out. The client's transport has an option for this, which the client does not set. */
class TimeoutRetryingTransport extends SniffingTransport {
  constructor(options: ConstructorParameters<typeof SniffingTransport>[0]) {
    super({ ...options, retryOnTimeout: true });
  }
}
