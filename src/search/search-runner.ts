import { SearchRefusedError } from '../elasticsearch/elasticsearch-errors.js';
import type { Logger } from '../util/log.js';
import type { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { CONNECTIONS_PER_NODE } from '../elasticsearch/search-pool.js';
import { ConcurrencyLimiter } from './concurrency-limiter.js';

/** Logged fields of a slow search. */
type LoggedSearch = Record<string, unknown> & { requestId: string; index: string };

/** Duration, in milliseconds, above which a search is logged as slow. Most searches take less than a hundredth of this time. */
const SLOW_MS = 500;

/** Maximum number of queued searches: about half a second of work. */
const MAX_WAITING_SEARCHES = 256;

/**
 * Maximum number of look-alike searches in flight per node and replica. The slowest of them take as long as dozens of
 * other searches, and a node runs only 1.5 searches per processor.
 */
const SIMILAR_PER_NODE = 1;

/** Maximum number of queued look-alike searches: about half a second of work. */
const MAX_WAITING_SIMILAR = 32;

/**
 * Concurrency limits of a replica. Look-alike searches cost much more than other searches and must not displace them.
 */
export interface SearchLimiters {
  search: ConcurrencyLimiter;
  similar: ConcurrencyLimiter;
}

/** @param nodes number of Elasticsearch nodes. */
export function createSearchLimiters(nodes: number): SearchLimiters {
  return {
    search: new ConcurrencyLimiter({ running: CONNECTIONS_PER_NODE * nodes, waiting: MAX_WAITING_SEARCHES }),
    similar: new ConcurrencyLimiter({ running: SIMILAR_PER_NODE * nodes, waiting: MAX_WAITING_SIMILAR }),
  };
}

/**
 * Runs a limited number of client searches at a time. Logs slow searches. If Elasticsearch refuses a search, the
 * snapshot watcher searches, too. If that search is refused, the service is unhealthy.
 */
export class SearchRunner {
  constructor(
    readonly limiters: SearchLimiters,
    private readonly snapshots: SnapshotWatcher,
    private readonly log: Logger,
  ) {}

  /**
   * Runs a search once the concurrency limit allows it.
   * @param what the logged fields of the search.
   * @throws {OverloadedError}, and the errors of `search`.
   */
  run<T>(what: LoggedSearch, search: () => Promise<T>, limiter = this.limiters.search): Promise<T> {
    return limiter.run(() => this.#logIfSlow(what, search));
  }

  /** Logs a slow search, even if it fails. Tells the snapshot watcher if Elasticsearch refuses the search. */
  async #logIfSlow<T>({ requestId, ...what }: LoggedSearch, search: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await search();
    } catch (error) {
      if (error instanceof SearchRefusedError) this.snapshots.onRefused();
      throw error;
    } finally {
      const ms = performance.now() - began;
      if (ms > SLOW_MS) this.log.warn({ request_id: requestId, ...what, ms }, 'slow search');
    }
  }
}
