import { Redis } from 'ioredis';
import type { Logger } from '../log.js';

/** Why connections that are not ready were refused: their commands fail without the reason. */
const refusals = new WeakMap<Redis, Error>();

/** What errors of Redis mean. Older releases name the script that failed first. */
const MEANINGS: readonly (readonly [pattern: RegExp, meaning: string])[] = [
  [/WRONGPASS/, 'Redis does not accept the user or the password in REDIS_URL'],
  [/NOAUTH/, 'Redis requires a password in REDIS_URL'],
  [/NOPERM|user executing the script/, 'Redis does not allow its user all that the service needs'],
  [/DB index/, 'Redis does not have the database in REDIS_URL'],
  [/READONLY/, 'Redis is a read-only replica'],
  [/OOM/, 'Redis is full, and its maxmemory-policy evicts nothing'],
  [/MISCONF|NOREPLICAS/, 'Redis refuses writes'],
  [/LOADING/, 'Redis is still loading its data'],
  [/MOVED|CLUSTERDOWN/, 'Redis is a cluster instead of one server'],
];

/** Options of every connection: without commands of ioredis itself, for which a user would need rights. */
export const UNPRIVILEGED = { enableReadyCheck: false, disableClientInfo: true } as const;

/** Describes in one line why a command of a connection failed, without any address. */
export function describeRedisError(error: unknown, redis: Redis): string {
  const isReply = (one?: Error) => one?.name === 'ReplyError';
  const reply = [error as Error, refusals.get(redis)].find(isReply);
  if (reply === undefined) return 'Redis does not respond';
  const known = MEANINGS.find(([pattern]) => pattern.test(reply.message));
  return known?.[1] ?? `Redis responds with an error: ${reply.message.split(' ')[0]}`;
}

/** Writes a key for a second. @throws what Redis says if it accepts no writes, as a replica or a full one. */
export async function probeWrites(redis: Redis, slug: string): Promise<void> {
  await redis.set(`${slug}:probe`, 1, 'PX', 1000);
}

/** Added to the pause before each further attempt to connect, in milliseconds. It is at most ten times as long. */
export const RETRY_STEP_MS = 100;

/**
 * Connects to Redis. A command on a lost connection fails at once instead of being queued; the connection is
 * restored automatically.
 * @param consequence what happens while Redis cannot be used, for the log.
 * @returns after the first attempt to connect, whether or not it succeeded.
 */
export async function createRedis(
  url: string,
  log: Logger,
  consequence: string,
  retryStepMs = RETRY_STEP_MS,
): Promise<Redis> {
  const redis: Redis = new Redis(url, {
    ...UNPRIVILEGED,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    autoResendUnfulfilledCommands: false,
    connectTimeout: 1000,
    // A process that was suspended for a second still reads the responses to what it sent before.
    commandTimeout: 2000,
    retryStrategy: (attempt) => Math.min(attempt, 10) * retryStepMs,
    // After a failover, the address may lead to another server only for new connections.
    reconnectOnError: (error) => {
      if (!error.message.includes('READONLY')) return false;
      refusals.set(redis, error);
      return true;
    },
  });
  /** Logged once each, until Redis responds: a wrong password also after a broken connection. */
  const reasons = new Set<string>();
  const report = (error: Error) => {
    refusals.set(redis, error);
    if (reasons.has(error.message)) return;
    reasons.add(error.message);
    log.warn({ err: error }, `${describeRedisError(error, redis)}: ${consequence}`);
  };
  redis.on('error', (error: Error) => {
    report(error);
    // If the database in the address does not exist, ioredis would use the first one, which may belong to
    // others.
    if (isSelectRefused(error)) redis.disconnect(true);
  });
  let attempts = 0;
  redis.on('reconnecting', () => {
    // A proxy in front of a Redis that is down closes connections without an error.
    if (++attempts > 1 && reasons.size === 0) report(new Error('the connection is closed at once'));
  });
  redis.on('ready', () => {
    if (reasons.size > 0) log.info('Redis responds again');
    reasons.clear();
    refusals.delete(redis);
    attempts = 0;
  });
  await new Promise<void>((resolve) => {
    redis.once('ready', resolve);
    redis.once('close', resolve);
  });
  return redis;
}

/** Whether the server does not have the database in the address. */
function isSelectRefused(error: Error & { command?: { name: string } }): boolean {
  return error.command?.name === 'select';
}
