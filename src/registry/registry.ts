import type { SearchPool } from '../elasticsearch/search-pool.js';
import type { RebuildContext } from '../rebuild/rebuild-context.js';
import { RebuildScheduler } from '../rebuild/rebuild-scheduler.js';
import { RebuildService, type RebuildServiceOptions } from '../rebuild/rebuild-service.js';
import { Catalog } from '../search/catalog.js';
import type { SearchLimiters } from '../search/concurrency-limiter.js';
import type { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';

/** All objects of one registry: for its served snapshots, for searches, and for rebuilds. */
export class Registry {
  readonly snapshots: SnapshotWatcher;
  readonly catalog: Catalog;
  readonly rebuilds: RebuildService;
  readonly scheduler: RebuildScheduler;

  /** @param pool for the searches of clients. */
  constructor(
    context: RebuildContext,
    pool: SearchPool,
    limiters: SearchLimiters,
    options: RebuildServiceOptions,
  ) {
    const { snapshots, log } = context;
    this.snapshots = snapshots;
    this.catalog = new Catalog(pool, snapshots, limiters, log);
    this.rebuilds = new RebuildService(context, options);
    this.scheduler = new RebuildScheduler(this.rebuilds, snapshots, log);
  }
}
