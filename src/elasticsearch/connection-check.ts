import { setTimeout as pause } from 'node:timers/promises';
import { errors } from '@elastic/elasticsearch';
import { Redis } from 'ioredis';
import { messageOf } from '../util/error-message.js';
import type { Logger } from '../util/log.js';
import {
  createReadClient,
  describeConnectionError,
  NotElasticsearchError,
  type ElasticsearchAccess,
} from './elasticsearch.js';
import { describeRedisError, NO_RESPONSE, probeWrites, UNPRIVILEGED } from '../redis/redis.js';

/** The major version that the service and its client are written for. */
const ELASTICSEARCH_MAJOR = 9;

const REDIS_TIMEOUT_MS = 3000;

/** Pause between two checks, in milliseconds. */
const CHECK_PAUSE_MS = 5000;

/** Elasticsearch or Redis at a configured address is unusable. The message is one line for the operator. */
export class ConnectionCheckError extends Error {
  override readonly name = 'ConnectionCheckError';
}

/** Elasticsearch has another major version. */
class WrongVersionError extends ConnectionCheckError {}

/** Waits until Elasticsearch responds. Logs an error if it has another major version. Never throws. */
export async function reportWrongVersion(
  access: ElasticsearchAccess,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const error = await checkElasticsearch(access).catch((failure: unknown) => failure);
    if (error instanceof WrongVersionError) log.error(error.message);
    if (error === undefined || error instanceof WrongVersionError) return;
    await pause(CHECK_PAUSE_MS, undefined, { ref: false });
  }
}

/**
 * Checks the server at `ELASTICSEARCH_URL` once.
 * @throws {ConnectionCheckError} if the server does not respond, is not an Elasticsearch 9, or rejects the credentials.
 */
export async function checkElasticsearch(access: ElasticsearchAccess): Promise<void> {
  const client = createReadClient(access);
  try {
    // The client's usual `Accept` header requires compatibility with version 9. With this header, earlier versions
    // respond, too.
    const { version } = await client.info({}, { headers: { accept: 'application/json' } });
    if (parseInt(version.number, 10) !== ELASTICSEARCH_MAJOR)
      throw wrongServer(`version ${version.number}`, WrongVersionError);
  } catch (error) {
    const described = describe(error, access);
    if (described !== undefined) throw described;
  } finally {
    await client.close();
  }
}

/**
 * The error to throw. Undefined if the credentials are valid but lack the privilege for this request, because no other
 * request needs this privilege.
 */
function describe(error: unknown, { nodes, apiKey }: ElasticsearchAccess): Error | undefined {
  const { cause } = error as Error;
  if (cause instanceof NotElasticsearchError) {
    return wrongServer(
      cause.status < 300 ? 'another product' : `a server that responds with ${cause.status}`,
    );
  }
  if (error instanceof errors.ResponseError) {
    if (error.statusCode === 403) return undefined;
    if (error.statusCode === 401) return new ConnectionCheckError(describeRejectedCredentials(nodes, apiKey));
    return wrongServer(`a server that responds with ${error.statusCode}`);
  }
  const silence = describeConnectionError(error);
  return silence === undefined ? (error as Error) : new ConnectionCheckError(silence, { cause: error });
}

function wrongServer(found: string, Type = ConnectionCheckError): ConnectionCheckError {
  return new Type(
    `ELASTICSEARCH_URL points to ${found}: set it to an Elasticsearch of version ${ELASTICSEARCH_MAJOR}`,
  );
}

function describeRejectedCredentials(nodes: readonly string[], apiKey: string | undefined): string {
  if (apiKey !== undefined)
    return 'Elasticsearch does not accept ELASTICSEARCH_API_KEY: make another one with npm run keys';
  return nodes.some((node) => new URL(node).username !== '')
    ? 'Elasticsearch does not accept the user and the password in ELASTICSEARCH_URL: correct them'
    : 'Elasticsearch requires authentication: make keys with npm run keys, and set ELASTICSEARCH_API_KEY';
}

/** Checks that Redis responds at `REDIS_URL`, and accepts writes. @throws {ConnectionCheckError} */
export async function checkRedis(url: string, slug: string): Promise<void> {
  const redis = new Redis(url, {
    ...UNPRIVILEGED,
    lazyConnect: true,
    connectTimeout: REDIS_TIMEOUT_MS,
    commandTimeout: REDIS_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // The first `error` event. It is more specific than the error that `connect` rejects with.
  let refusal: Error | undefined;
  redis.on('error', (error: Error) => (refusal ??= error));
  try {
    await redis.connect();
    // ioredis connects even if the database does not exist.
    if (refusal !== undefined) throw refusal;
    await probeWrites(redis, slug);
  } catch (error) {
    const cause = refusal ?? (error as Error);
    const described = describeRedisError(cause, redis);
    throw new ConnectionCheckError(
      described === NO_RESPONSE
        ? `${described} at REDIS_URL (${messageOf(cause)}): start it, or correct the address`
        : described,
      { cause },
    );
  } finally {
    redis.disconnect();
  }
}
