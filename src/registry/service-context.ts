import type { Client } from '@elastic/elasticsearch';
import type { Redis } from 'ioredis';
import { createReadClient } from '../elasticsearch/elasticsearch.js';
import { createRedis } from '../redis/redis.js';
import type { Config } from '../config/config.js';
import type { Logger } from '../util/log.js';
import { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { aliasOf } from '../snapshot/index-names.js';

/** What reading a registry needs. */
export interface ServiceContext {
  config: Config;
  log: Logger;
  alias: string;
  /** Has the rights to read, and short timeouts. */
  reader: Client;
  /** Undefined if it is not configured. */
  redis: Redis | undefined;
  /** Tracks the snapshots being served. Polls only after `start()`. */
  snapshots: SnapshotWatcher;
  close(): Promise<void>;
}

/**
 * Connects to Elasticsearch and Redis.
 * @param withoutRedis the consequence while Redis does not respond, for the log.
 */
export async function createServiceContext(
  config: Config,
  log: Logger,
  withoutRedis: string,
): Promise<ServiceContext> {
  const { nodes, apiKey } = config.elasticsearch;
  const alias = aliasOf(config.registry.slug);
  const redis =
    config.redisUrl === undefined ? undefined : await createRedis(config.redisUrl, log, withoutRedis);
  const reader = createReadClient({ nodes, apiKey });
  const snapshots = new SnapshotWatcher(reader, alias, log, config.changesRetention);
  const close = async () => {
    snapshots.stop();
    redis?.disconnect();
    await reader.close();
  };
  return { config, log, alias, reader, redis, snapshots, close };
}
