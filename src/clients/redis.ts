import { Redis } from 'ioredis';
import type { Logger } from '../log.js';

/**
 * A connection that fails fast: a command on a lost connection is an error at once, never a queue that grows.
 * The connection itself comes back by itself.
 * @param consequence what it means that Redis does not respond, for the log.
 * @returns when the first attempt to connect has ended, well or not.
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
    // Where the database in the address does not exist, ioredis would go on with the first one, which another may use.
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

/** Whether the server has no database of the number in the address. */
function isSelectRefused(error: Error & { command?: { name: string } }): boolean {
  return error.command?.name === 'select';
}
