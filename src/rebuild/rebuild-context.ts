import type { Client } from '@elastic/elasticsearch';
import type { Redis } from 'ioredis';
import type { Generations } from '../catalog/generation.js';
import { createRebuildClient } from '../clients/elasticsearch.js';
import { SearchPool } from '../clients/search-pool.js';
import type { Config } from '../config.js';
import type { Logger } from '../log.js';
import { OwnBoard, SharedBoard } from './board.js';
import { aliasOf } from './index-names.js';
import { OwnLock, SharedLock, type RebuildLock } from './lock.js';
import type { ProgressReport } from './progress.js';
import { Rebuilds } from './rebuilds.js';

/** What changes a registry's data, with the right to do so: clients of its own, the lock, the rebuilds. */
export interface Builder {
  alias: string;
  client: Client;
  lock: RebuildLock;
  rebuilds: Rebuilds;
  /** Stops a running rebuild before its flip, waits until it has cleaned up, and closes the clients. */
  close(): Promise<void>;
}

interface BuilderOptions {
  config: Config;
  log: Logger;
  /** Shares the lock and the progress with all replicas; without it they are this process's own. */
  redis: Redis | undefined;
  generations: Generations;
  onRebuild?: ((report: ProgressReport) => void) | undefined;
}

/** Puts together what rebuilds need, the same for the server and for the command line. */
export function createBuilder({ config, log, redis, generations, onRebuild }: BuilderOptions): Builder {
  const { slug } = config.registry;
  const access = { nodes: config.elasticsearch.nodes, apiKey: config.elasticsearch.rebuildApiKey };
  const client = createRebuildClient(access);
  const pool = new SearchPool(access);
  const lock = redis === undefined ? new OwnLock() : new SharedLock(redis, slug, log);
  const board = redis === undefined ? new OwnBoard() : new SharedBoard(redis, slug, log);
  const alias = aliasOf(slug);
  const rebuilds = new Rebuilds({ client, pool, alias, config, log, lock, board, generations }, onRebuild);
  const close = async () => {
    await rebuilds.stop();
    await Promise.all([client.close(), pool.close()]);
  };
  return { alias, client, lock, rebuilds, close };
}
