import type { SearchPool } from '../elasticsearch/search-pool.js';
import { rebuildContextOf, type Connections } from '../rebuild/rebuild-context.js';
import type { ProgressReport } from '../rebuild/process/progress.js';
import { RebuildScheduler } from '../rebuild/process/rebuild-scheduler.js';
import { RebuildService } from '../rebuild/process/rebuild-service.js';
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
  /** Called with the progress of rebuilds. */
  onRebuild: ((report: ProgressReport) => void) | undefined;
}

/** All objects of one registry: for its served snapshots, for searches, and for rebuilds. */
export class Registry {
  readonly snapshots: SnapshotWatcher;
  readonly catalog: Catalog;
  readonly rebuilds: RebuildService;
  readonly scheduler: RebuildScheduler;

  constructor(config: Config, { connections, pool, limiters, log, env, onRebuild }: Shared) {
    const context = rebuildContextOf(connections, config, log);
    const { snapshots } = context;
    this.snapshots = snapshots;
    this.catalog = new Catalog(pool, snapshots, limiters, log);
    this.rebuilds = new RebuildService(context, { env, onProgress: onRebuild });
    this.scheduler = new RebuildScheduler(this.rebuilds, snapshots, log);
  }
}
