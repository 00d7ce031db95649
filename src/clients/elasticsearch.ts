import { Client, errors, SniffingTransport } from '@elastic/elasticsearch';

/** Where Elasticsearch is, and the key to it. */
export interface ElasticsearchAccess {
  nodes: readonly string[];
  apiKey: string | undefined;
}

/** A reading request that took longer than this has failed, in milliseconds; the promise is an error within two seconds. */
const READ_TIMEOUT_MS = 1500;

/**
 * Timeout of one request of a rebuild, in milliseconds: more than the minute for which Elasticsearch itself waits for a
 * shard. The connection enforces it, so that no single request can have a longer one: what takes longer (merging, copying)
 * is started and then observed.
 */
const REBUILD_TIMEOUT_MS = 90_000;

/**
 * For looking where the alias points: short time-out, one retry on another connection. Of several nodes, another one is
 * asked also where the first does not answer in time.
 */
export function createReadClient(access: ElasticsearchAccess): Client {
  return createClient(access, 'poll', {
    requestTimeout: READ_TIMEOUT_MS,
    maxRetries: 1,
    ...(access.nodes.length > 1 ? { Transport: TimeoutRetryingTransport } : {}),
  });
}

/** For a rebuild: patient. */
export function createRebuildClient(access: ElasticsearchAccess): Client {
  return createClient(access, 'rebuild', { requestTimeout: REBUILD_TIMEOUT_MS, maxRetries: 5 });
}

/** For an administrator at a terminal. */
export function createAdministratorClient(
  nodes: readonly string[],
  auth: { username: string; password: string },
): Client {
  return createClient({ nodes, apiKey: undefined }, 'keys', { auth, maxRetries: 0 });
}

/**
 * Says in one line that Elasticsearch refuses the credentials of a variable, without naming them or anything of the
 * cluster. Undefined for every other error.
 */
export function describeAuthError(error: unknown, variable: string): string | undefined {
  const response =
    error instanceof Error && error.cause instanceof errors.ResponseError ? error.cause : error;
  if (!(response instanceof errors.ResponseError)) return undefined;
  if (response.statusCode === 401) return `Elasticsearch does not accept ${variable}`;
  const [, action] = /^action \[([^\]]+)\] is unauthorized/.exec(reasonOf(response)) ?? [];
  return action === undefined ? undefined : `${variable} does not give the right to ${action}`;
}

/** Says in one line that nothing answers where Elasticsearch should, and why. Undefined for every other error. */
export function describeConnectionError(error: unknown): string | undefined {
  if (!(error instanceof errors.ConnectionError || error instanceof errors.TimeoutError)) return undefined;
  // OpenSSL's reasons end with a line end.
  return `Elasticsearch does not answer at ELASTICSEARCH_URL (${error.message.trim()}): start it, or correct the address`;
}

function reasonOf({ body }: errors.ResponseError): string {
  return (body as { error?: { reason?: string } } | undefined)?.error?.reason ?? '';
}

/** @param opaqueId names its requests in Elasticsearch's tasks and slow logs. */
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

/** The client's own transport, which can do this and offers no option for it. */
class TimeoutRetryingTransport extends SniffingTransport {
  constructor(options: ConstructorParameters<typeof SniffingTransport>[0]) {
    super({ ...options, retryOnTimeout: true });
  }
}
