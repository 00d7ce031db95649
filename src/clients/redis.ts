import { Redis } from 'ioredis';
import type { Logger } from '../log.js';

/**
 * Connects to Redis. A command on a lost connection fails at once instead of being queued; the connection is
 * restored automatically.
 * @param consequence what happens while Redis does not respond, for the log.
 * @returns after the first attempt to connect, whether or not it succeeded.
 */
export async function createRedis(url: string, log: Logger, consequence: string): Promise<Redis> {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    autoResendUnfulfilledCommands: false,
    connectTimeout: 1000,
    commandTimeout: 1000,
    retryStrategy: (attempt) => Math.min(attempt * 100, 1000),
  });
  let lost = false;
  redis.on('error', (error: Error) => {
    if (!lost) log.warn({ err: error }, `Redis does not respond: ${consequence} until it does`);
    lost = true;
    // If the database in the address does not exist, ioredis would use the first one, which may belong to
    // others.
    if (isSelectRefused(error)) redis.disconnect(true);
  });
  redis.on('ready', () => {
    if (lost) log.info('Redis responds again');
    lost = false;
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
