import type { SearchPool } from '../elasticsearch/search-pool.js';
import { rebuildContextOf, type Connections } from '../rebuild/rebuild-context.js';
import { RebuildScheduler } from '../rebuild/rebuild-scheduler.js';
import { RebuildService, type RebuildServiceOptions } from '../rebuild/rebuild-service.js';
import { Catalog } from '../search/catalog.js';
import type { SearchLimiters } from '../search/concurrency-limiter.js';
import type { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import type { Config } from '../config/config.js';
import type { Logger } from '../util/log.js';

/** Objects that the registries of a process share. */
export interface Shared {
  connections: Connections;
  /** For the searches of clients. */
  pool: SearchPool;
  limiters: SearchLimiters;
  log: Logger;
  /** The environment variables of the configuration. Rebuilds read them, too. */
  env: NodeJS.ProcessEnv;
  /** Where rebuilds write their logs, and what is called with their states: see `RebuildService`. */
  rebuilds: Pick<RebuildServiceOptions, 'output' | 'onState'>;
}

/** All objects of one registry: for its served snapshots, for searches, and for rebuilds. */
export class Registry {
  readonly snapshots: SnapshotWatcher;
  readonly catalog: Catalog;
  readonly rebuilds: RebuildService;
  readonly scheduler: RebuildScheduler;

  constructor(config: Config, { connections, pool, limiters, log, env, rebuilds }: Shared) {
    const context = rebuildContextOf(connections, config, log);
    const { snapshots } = context;
    this.snapshots = snapshots;
    this.catalog = new Catalog(pool, snapshots, limiters, log);
    this.rebuilds = new RebuildService(context, { env, ...rebuilds });
    this.scheduler = new RebuildScheduler(this.rebuilds, snapshots, log);
  }
}
