import type { Client } from '@elastic/elasticsearch';
import type { Redis } from 'ioredis';
import { createReadClient, createRebuildClient } from '../clients/elasticsearch.js';
import { createRedis } from '../clients/redis.js';
import { SearchPool } from '../clients/search-pool.js';
import type { Config } from '../config.js';
import type { Logger } from '../log.js';
import { GenerationWatcher } from '../snapshot/generation-watcher.js';
import { aliasOf } from '../snapshot/index-names.js';
import { InMemoryLock, RedisLock, type RebuildLock } from './lock.js';
import { StatusStore } from './status-store.js';

/** Timeout of reading one page of a whole generation, in milliseconds: above the timeout in the query. */
const EXPORT_TIMEOUT_MS = 30_000;

/** Everything that rebuilds and rollbacks need, for the server, its worker process and the commands. */
export interface RebuildContext {
  alias: string;
  /** Has the rights to read, and short timeouts. */
  reader: Client;
  /** Has the rights to rebuild. */
  client: Client;
  /** With the same rights, for searching the new index. */
  pool: SearchPool;
  /** With the same rights and a longer timeout, for reading whole generations. */
  exportPool: SearchPool;
  config: Config;
  log: Logger;
  /** Undefined if it is not configured: the lock and the progress are then local to this process. */
  redis: Redis | undefined;
  lock: RebuildLock;
  /** Undefined without Redis. */
  status: StatusStore | undefined;
  /** Tracks the generations being served. Polls only after `start()`. */
  generations: GenerationWatcher;
  close(): Promise<void>;
}

/**
 * Connects to Elasticsearch and Redis.
 * @param withoutRedis the consequence while Redis does not respond, for the log.
 */
export async function createRebuildContext(
  config: Config,
  log: Logger,
  withoutRedis: string,
): Promise<RebuildContext> {
  const { redisUrl, registry, elasticsearch } = config;
  const { nodes, apiKey, rebuildApiKey } = elasticsearch;
  const { slug } = registry;
  const alias = aliasOf(slug);
  const redis = redisUrl === undefined ? undefined : await createRedis(redisUrl, log, withoutRedis);
  const reader = createReadClient({ nodes, apiKey });
  const client = createRebuildClient({ nodes, apiKey: rebuildApiKey });
  const pool = new SearchPool({ nodes, apiKey: rebuildApiKey });
  const exportPool = new SearchPool({ nodes, apiKey: rebuildApiKey }, { timeoutMs: EXPORT_TIMEOUT_MS });
  const generations = new GenerationWatcher(reader, alias, log, config.changesRetention);
  return {
    alias,
    reader,
    client,
    pool,
    exportPool,
    config,
    log,
    redis,
    lock: redis === undefined ? new InMemoryLock() : new RedisLock(redis, slug, log),
    status: redis && new StatusStore(redis, slug, log),
    generations,
    close: async () => {
      generations.stop();
      redis?.disconnect();
      await Promise.all([client.close(), pool.close(), exportPool.close(), reader.close()]);
    },
  };
}
