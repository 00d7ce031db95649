import { Redis } from 'ioredis';
import { ConnectionCheckError } from '../src/elasticsearch/connection-check.js';
import { describeRedisError, NO_RESPONSE, probeWrites, UNPRIVILEGED } from '../src/redis/redis.js';
import { messageOf } from '../src/util/reason-text.js';

/** Timeout for opening the connection, and of each command, in milliseconds. */
const REDIS_TIMEOUT_MS = 3000;

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
