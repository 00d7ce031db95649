import { Redis } from 'ioredis';
import type { Logger } from '../util/log.js';

/** An error of a connection, or an error reply (`ReplyError`) to a command. */
type RedisError = NodeJS.ErrnoException & { command?: { name: string } };

/** The last error of each connection, because the errors of its commands may not contain the reason. */
const lastErrors = new WeakMap<Redis, Error>();

/** The message if there was no reply at all. */
export const NO_RESPONSE = 'Redis does not respond';

/** Error replies of Redis or a proxy to a command that is unknown, or that the user may not run. */
const COMMAND_REFUSED = /NOPERM|un(known|supported) (sub)?command/i;

/**
 * Options of every connection. They turn off the commands that ioredis itself sends, such as HELLO of protocol 3. These
 * commands need additional privileges, or proxies reject them.
 */
export const UNPRIVILEGED = { enableReadyCheck: false, disableClientInfo: true, protocol: 2 } as const;

/** Describes in one line why a command failed. The text contains no address. */
export function describeRedisError(error: unknown, redis: Redis): string {
  const reply = [error as Error, lastErrors.get(redis)].find((one) => one?.name === 'ReplyError');
  // Numbers, such as slots and addresses of a cluster, would make each reply another reason.
  return reply === undefined ? NO_RESPONSE : `Redis responds: ${reply.message.replace(/\s*\d.*/s, '')}`;
}

/**
 * Attempts a write without effect: `XX` changes only an existing key, and this key never exists.
 * @throws the error of Redis if it accepts no writes, for example because it is a replica or full.
 */
export async function probeWrites(redis: Redis, slug: string): Promise<void> {
  await redis.set(`${slug}:probe`, 1, 'PX', 1000, 'XX');
}

/**
 * A connection is replaced if a command gets no reply for this time, in milliseconds. A NAT gateway or a balancer may
 * have dropped the connection silently.
 */
const SILENCE_MS = 3000;

/**
 * Added to the pause before each further attempt to connect, in milliseconds. The pause is at most ten times this
 * value.
 */
const RETRY_STEP_MS = 100;

/**
 * Connects to Redis. A command on a lost connection fails at once instead of being queued; the connection is
 * restored automatically.
 * @param consequence what happens while Redis cannot be used, for the log.
 * @param commandTimeout in milliseconds.
 * @returns after the first attempt to connect, whether or not it succeeded.
 */
export async function createRedis(
  url: string,
  log: Logger,
  consequence: string,
  commandTimeout: number,
): Promise<Redis> {
  const redis: Redis = new Redis(url, {
    ...UNPRIVILEGED,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    autoResendUnfulfilledCommands: false,
    connectTimeout: 1000,
    commandTimeout,
    socketTimeout: SILENCE_MS,
    retryStrategy: (attempt) => Math.min(attempt, 10) * RETRY_STEP_MS,
    // After a failover, this connection may still lead to the old server, which is read-only now.
    reconnectOnError: (error) => {
      if (!error.message.includes('READONLY')) return false;
      lastErrors.set(redis, error);
      return true;
    },
  });
  /** The reasons logged since Redis last responded. Each reason is logged once. */
  const reasons = new Set<string>();
  const report = (error: Error) => {
    lastErrors.set(redis, error);
    if (reasons.has(error.message)) return;
    reasons.add(error.message);
    log.warn({ err: error }, `${describeRedisError(error, redis)}: ${consequence}`);
  };
  redis.on('error', (error: Error) => {
    report(error);
    // If the database in the address does not exist, ioredis would use database 0, which may belong to others.
    if ((error as RedisError).command?.name === 'select') redis.disconnect(true);
  });
  redis.on('ready', () => {
    firstReply(redis).then(
      () => {
        if (reasons.size > 0) log.info('Redis responds again');
        reasons.clear();
        lastErrors.delete(redis);
      },
      // If the connection has failed, the `error` event reports the reason.
      (error: unknown) => {
        if ((error as Error).name === 'ReplyError') report(error as Error);
      },
    );
  });
  await new Promise<void>((resolve) => {
    redis.once('ready', resolve);
    redis.once('close', resolve);
  });
  return redis;
}

/**
 * Resolves once Redis has responded on this connection. Before `ready`, ioredis waits for a response only if it sends a
 * password.
 * @throws the error reply of Redis, or the error of the connection. A rejection of the command PING itself is not
 * thrown: Redis has responded.
 */
async function firstReply(redis: Redis): Promise<void> {
  if (redis.options.password) return;
  await redis.ping().catch((error: unknown) => {
    if (!COMMAND_REFUSED.test((error as Error).message)) throw error;
  });
}
