import type { Logger } from '../../util/log.js';
import type { SnapshotWatcher } from '../../snapshot/snapshot-watcher.js';
import type { RebuildService } from './rebuild-service.js';
import type { StartOptions } from './rebuild-process.js';

/** Bounds of the pause before a failed first rebuild is retried, doubled each time, in milliseconds. */
const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 300_000;
/** How often to check whether a first rebuild is needed, in milliseconds. */
const COLD_START_POLL_MS = 500;

/** Starts rebuilds without a request: until there is a first snapshot, and at a fixed interval. */
export class RebuildScheduler {
  #isStopped = false;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #attempts = new Set<Promise<boolean>>();

  constructor(
    private readonly rebuilds: RebuildService,
    private readonly snapshots: SnapshotWatcher,
    private readonly log: Logger,
  ) {}

  /**
   * Builds while there is no complete index (a cold start), with backoff after failures. Unless `intervalSeconds` is 0,
   * also rebuilds at that interval if the dataset has changed. Only one of several replicas starts such a rebuild.
   */
  start(intervalSeconds: number): void {
    let retryMs = FIRST_RETRY_MS;
    const coldStart = async () => {
      const { state } = this.snapshots;
      const hasFailed = state === 'absent' && (await this.#attempt({ force: false, skipIf: 'served' }));
      this.#after(hasFailed ? retryMs : COLD_START_POLL_MS, coldStart);
      if (state !== 'absent') retryMs = FIRST_RETRY_MS;
      if (hasFailed) retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
    };
    void coldStart();

    if (intervalSeconds === 0) return;
    const refresh = async () => {
      if (await this.rebuilds.claimsRefresh(intervalSeconds)) {
        await this.#attempt({ force: false, skipIf: 'unchanged' });
      }
      this.#after(intervalSeconds * 1000, refresh);
    };
    this.#after(intervalSeconds * 1000, refresh);
  }

  /** Starts no more rebuilds, and waits for the end of the running one without stopping it. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(this.#attempts);
  }

  /** Rebuilds unless another replica is rebuilding, and waits for the end. @returns whether it failed. */
  #attempt(options: StartOptions): Promise<boolean> {
    const attempt = this.#rebuild(options).finally(() => this.#attempts.delete(attempt));
    this.#attempts.add(attempt);
    return attempt;
  }

  async #rebuild(options: StartOptions): Promise<boolean> {
    try {
      const response = await this.rebuilds.start(options);
      return response.accepted && 'failure' in (await response.outcome);
    } catch (error) {
      if (!this.#isStopped) this.log.error({ err: error }, 'the rebuild could not be started');
      return true;
    }
  }

  #after(ms: number, action: () => Promise<void>): void {
    if (this.#isStopped) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void action();
    }, ms);
    this.#timers.add(timer);
  }
}
