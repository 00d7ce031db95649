import { Client, errors, SniffingTransport } from '@elastic/elasticsearch';

/** The addresses of Elasticsearch, and the API key. */
export interface ElasticsearchAccess {
  nodes: readonly string[];
  apiKey: string | undefined;
}

/** Timeout of a read request, in milliseconds: clients get an error within two seconds. */
const READ_TIMEOUT_MS = 1500;

/**
 * Timeout of one request of a rebuild, in milliseconds: more than the minute that Elasticsearch itself waits for
 * a shard. The connection enforces it, so that no single request can take longer; longer operations (merging,
 * copying) are started and then polled.
 */
const REBUILD_TIMEOUT_MS = 90_000;

/**
 * Creates a client for short reads: short timeout, one retry on another connection. With several nodes,
 * requests that time out are retried on another one, too.
 */
export function createReadClient(access: ElasticsearchAccess): Client {
  return createClient(access, 'poll', {
    requestTimeout: READ_TIMEOUT_MS,
    maxRetries: 1,
    ...(access.nodes.length > 1 ? { Transport: TimeoutRetryingTransport } : {}),
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
  // The client would prefer them to `auth`.
  const bare = nodes.map((node) => Object.assign(new URL(node), { username: '', password: '' }).href);
  return createClient({ nodes: bare, apiKey: undefined }, 'keys', { auth, maxRetries: 0 });
}

/**
 * Describes in one line that Elasticsearch rejects the credentials of a variable, without revealing them or
 * anything of the cluster. Undefined for other errors.
 */
export function describeAuthError(error: unknown, variable: string): string | undefined {
  const response =
    error instanceof Error && error.cause instanceof errors.ResponseError ? error.cause : error;
  if (!(response instanceof errors.ResponseError)) return undefined;
  if (response.statusCode === 401) return `Elasticsearch does not accept ${variable}`;
  const [, action] = /^action \[([^\]]+)\] is unauthorized/.exec(reasonOf(response)) ?? [];
  return action === undefined ? undefined : `${variable} does not allow ${action}`;
}

/** Describes in one line why Elasticsearch does not respond. Undefined for other errors. */
export function describeConnectionError(error: unknown): string | undefined {
  if (!(error instanceof errors.ConnectionError || error instanceof errors.TimeoutError)) return undefined;
  // OpenSSL's messages end with a newline.
  return `Elasticsearch does not respond at ELASTICSEARCH_URL (${error.message.trim()}): start it, or correct the address`;
}

function reasonOf({ body }: errors.ResponseError): string {
  return (body as { error?: { reason?: string } } | undefined)?.error?.reason ?? '';
}

/** @param opaqueId identifies its requests in Elasticsearch's tasks and slow logs. */
function createClient(
  { nodes, apiKey }: ElasticsearchAccess,
  opaqueId: string,
  options: ConstructorParameters<typeof Client>[0],
): Client {
  return new Client({
    nodes: [...nodes],
    ...(apiKey === undefined ? {} : { auth: { apiKey } }),
    enableMetaHeader: false,
    headers: { 'x-opaque-id': opaqueId },
    ...options,
  });
}

/** The client's own transport supports this, but the client has no option for it. */
class TimeoutRetryingTransport extends SniffingTransport {
  constructor(options: ConstructorParameters<typeof SniffingTransport>[0]) {
    super({ ...options, retryOnTimeout: true });
  }
}
