import type { Client } from '@elastic/elasticsearch';
import type { Redis } from 'ioredis';
import { createRebuildClient } from '../clients/elasticsearch.js';
import { SearchPool } from '../clients/search-pool.js';
import type { Config } from '../config.js';
import type { Logger } from '../log.js';
import { StatusStore } from './status-store.js';
import { aliasOf } from './index-names.js';
import { InMemoryLock, RedisLock, type RebuildLock } from './lock.js';

/** What changes the data of a registry needs, with the rights to do so. */
export interface RebuildContext {
  alias: string;
  client: Client;
  pool: SearchPool;
  config: Config;
  log: Logger;
  lock: RebuildLock;
  /** Undefined without Redis. */
  status: StatusStore | undefined;
  close(): Promise<void>;
}

interface Options {
  config: Config;
  log: Logger;
  /** Shares the lock and the progress with all replicas; without it they are local to this process. */
  redis: Redis | undefined;
}

/** Creates the clients, the lock and the status store of rebuilds and rollbacks. */
export function createRebuildContext({ config, log, redis }: Options): RebuildContext {
  const { slug } = config.registry;
  const access = { nodes: config.elasticsearch.nodes, apiKey: config.elasticsearch.rebuildApiKey };
  const client = createRebuildClient(access);
  const pool = new SearchPool(access);
  return {
    alias: aliasOf(slug),
    client,
    pool,
    config,
    log,
    lock: redis === undefined ? new InMemoryLock() : new RedisLock(redis, slug, log),
    status: redis && new StatusStore(redis, slug, log),
    close: async () => {
      await Promise.all([client.close(), pool.close()]);
    },
  };
}
