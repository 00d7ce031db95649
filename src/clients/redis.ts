import { Redis } from 'ioredis';
import type { Logger } from '../log.js';

/** Added to the pause before each further attempt to connect, in milliseconds. It is at most ten times as long. */
export const RETRY_STEP_MS = 100;

/**
 * Connects to Redis. A command on a lost connection fails at once instead of being queued; the connection is
 * restored automatically.
 * @param consequence what happens while Redis does not respond, for the log.
 * @returns after the first attempt to connect, whether or not it succeeded.
 */
export async function createRedis(
  url: string,
  log: Logger,
  consequence: string,
  retryStepMs = RETRY_STEP_MS,
): Promise<Redis> {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    autoResendUnfulfilledCommands: false,
    connectTimeout: 1000,
    commandTimeout: 1000,
    retryStrategy: (attempt) => Math.min(attempt, 10) * retryStepMs,
    // After a failover, the address may lead to another server only for new connections.
    // Older releases of Redis name the script that failed first.
    reconnectOnError: ({ message }) => message.includes('READONLY'),
  });
  /** Logged once each, until Redis responds: a wrong password also after a broken connection. */
  const reasons = new Set<string>();
  const report = (error: Error) => {
    if (reasons.has(error.message)) return;
    reasons.add(error.message);
    log.warn({ err: error }, `Redis does not respond: ${consequence} until it does`);
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
