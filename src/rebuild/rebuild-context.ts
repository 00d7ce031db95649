import type { Client } from '@elastic/elasticsearch';
import { createRebuildClient } from '../elasticsearch/elasticsearch.js';
import { SearchPool } from '../elasticsearch/search-pool.js';
import type { Config } from '../config/config.js';
import type { Logger } from '../util/log.js';
import { EXPORT_TIMEOUT_MS } from '../snapshot/name-order.js';
import { createServiceContext, type ServiceContext } from '../registry/service-context.js';
import { RebuildLock } from './process/lock.js';
import { StatusStore } from './process/status-store.js';

/** Everything that rebuilds and rollbacks need, for the server and the commands. */
export interface RebuildContext extends ServiceContext {
  /** Has the rights to rebuild. */
  client: Client;
  /** With the same rights, for searching the new index. */
  pool: SearchPool;
  /** With the same rights and a longer timeout, for reading whole snapshots. */
  exportPool: SearchPool;
  /** Both are undefined without Redis. */
  lock: RebuildLock | undefined;
  status: StatusStore | undefined;
}

/** Adds what rebuilds need to a context. It is closed with the result. */
export function rebuildContextOf(context: ServiceContext): RebuildContext {
  const { config, log, redis } = context;
  const { nodes, rebuildApiKey } = config.elasticsearch;
  const { slug } = config.registry;
  const client = createRebuildClient({ nodes, apiKey: rebuildApiKey });
  const pool = new SearchPool({ nodes, apiKey: rebuildApiKey });
  const exportPool = new SearchPool({ nodes, apiKey: rebuildApiKey }, { timeoutMs: EXPORT_TIMEOUT_MS });
  return {
    ...context,
    client,
    pool,
    exportPool,
    lock: redis && new RebuildLock(redis, slug, log),
    status: redis && new StatusStore(redis, slug, log),
    close: async () => {
      await Promise.all([context.close(), client.close(), pool.close(), exportPool.close()]);
    },
  };
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
  return rebuildContextOf(await createServiceContext(config, log, withoutRedis));
}
