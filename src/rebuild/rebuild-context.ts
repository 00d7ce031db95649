import type { Client } from '@elastic/elasticsearch';
import type { Redis } from 'ioredis';
import { createReadClient, createRebuildClient } from '../elasticsearch/elasticsearch.js';
import { SearchPool } from '../elasticsearch/search-pool.js';
import { createRedis } from '../redis/redis.js';
import type { Config } from '../config/config.js';
import type { Logger } from '../util/log.js';
import { EXPORT_TIMEOUT_MS } from '../snapshot/name-order.js';
import { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { aliasOf } from '../snapshot/index-names.js';
import { RebuildLock } from './process/lock.js';
import { StatusStore } from './process/status-store.js';

/** The connections of a process to Elasticsearch and Redis. All registries of the process share them. */
export interface Connections {
  /** Has the rights to read, and short timeouts. */
  reader: Client;
  /** Has the rights to rebuild. */
  client: Client;
  /** Has the rights to rebuild, like `client`. Searches the new index. */
  pool: SearchPool;
  /** Has the rights to rebuild, and a longer timeout than `pool`. Reads whole snapshots. */
  exportPool: SearchPool;
  /** Undefined if Redis is not configured. */
  redis: Redis | undefined;
  close(): Promise<void>;
}

/** Everything that rebuilds and rollbacks of a registry need, for the server and the commands. */
export interface RebuildContext extends Connections {
  config: Config;
  log: Logger;
  alias: string;
  /** Tracks the snapshots being served. Polls only after `start()`. */
  snapshots: SnapshotWatcher;
  /** `lock` and `status` are undefined without Redis. */
  lock: RebuildLock | undefined;
  status: StatusStore | undefined;
}

/**
 * Connects to Elasticsearch and Redis.
 * @param withoutRedis text for the log: the consequence while Redis does not respond.
 */
export async function connect(config: Config, log: Logger, withoutRedis: string): Promise<Connections> {
  const { nodes, apiKey, rebuildApiKey } = config.elasticsearch;
  const redis =
    config.redisUrl === undefined ? undefined : await createRedis(config.redisUrl, log, withoutRedis);
  const reader = createReadClient({ nodes, apiKey });
  const client = createRebuildClient({ nodes, apiKey: rebuildApiKey });
  const pool = new SearchPool({ nodes, apiKey: rebuildApiKey });
  const exportPool = new SearchPool({ nodes, apiKey: rebuildApiKey }, { timeoutMs: EXPORT_TIMEOUT_MS });
  const close = async () => {
    redis?.disconnect();
    await Promise.all([reader, client, pool, exportPool].map((connection) => connection.close()));
  };
  return { reader, client, pool, exportPool, redis, close };
}

/** Adds the objects of one registry to connections. Closing the result closes the connections. */
export function rebuildContextOf(connections: Connections, config: Config, log: Logger): RebuildContext {
  const { reader, redis } = connections;
  const { slug } = config.registry;
  const alias = aliasOf(slug);
  return {
    ...connections,
    config,
    log,
    alias,
    snapshots: new SnapshotWatcher(reader, alias, log),
    lock: redis && new RebuildLock(redis, slug, log),
    status: redis && new StatusStore(redis, slug, log),
  };
}

/** Creates a context with its own connections, for a command or a rebuild process. */
export async function createRebuildContext(
  config: Config,
  log: Logger,
  withoutRedis: string,
): Promise<RebuildContext> {
  return rebuildContextOf(await connect(config, log, withoutRedis), config, log);
}
