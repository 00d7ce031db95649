import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../util/log.js';
import type { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import type { RebuildService, StartOptions } from './rebuild-service.js';

/** Bounds of the pause before a failed first rebuild is retried, in milliseconds. It doubles after each failure. */
const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 300_000;
/** How often to check whether a first rebuild is needed, in milliseconds. */
const COLD_START_POLL_MS = 500;

/**
 * A refresh starts if the last rebuild of any replica began this part of an interval ago. Below 1, because the timer and
 * the request take different times.
 */
const MIN_AGE = 0.9;

/** Starts rebuilds without a request: until there is a first snapshot, and at a fixed interval. */
export class RebuildScheduler {
  readonly #stopping = new AbortController();
  #loops: Promise<unknown> | undefined;

  constructor(
    private readonly rebuilds: RebuildService,
    private readonly snapshots: SnapshotWatcher,
    private readonly log: Logger,
  ) {}

  /**
   * Starts a rebuild while there is no complete index (a cold start), with backoff after failures. Unless
   * `intervalSeconds` is 0, also starts a refresh at this interval. A refresh builds an index only if the dataset has
   * changed. Only one of several replicas starts the refresh of an interval.
   */
  start(intervalSeconds: number): void {
    const refreshing = intervalSeconds === 0 ? undefined : this.#refresh(intervalSeconds);
    this.#loops = Promise.all([this.#coldStart(), refreshing]);
  }

  /** Starts no more rebuilds, and waits for the end of the running one without stopping it. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loops;
  }

  async #coldStart(): Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    for (;;) {
      const { state } = this.snapshots;
      const hasFailed = state === 'absent' && (await this.#rebuild({ force: false, skipIf: 'served' }));
      if (!(await this.#pause(hasFailed ? retryMs : COLD_START_POLL_MS))) return;
      if (state !== 'absent') retryMs = FIRST_RETRY_MS;
      else if (hasFailed) retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
    }
  }

  async #refresh(intervalSeconds: number): Promise<void> {
    while (await this.#pause(intervalSeconds * 1000)) {
      const minAgeMs = intervalSeconds * 1000 * MIN_AGE;
      await this.#rebuild({ force: false, skipIf: 'unchanged', minAgeMs });
    }
  }

  /** @returns false as soon as the scheduler stops. */
  #pause(ms: number): Promise<boolean> {
    return pause(ms, true, { signal: this.#stopping.signal }).catch(() => false);
  }

  /** Waits for the end. @returns whether the rebuild failed or could not be started. */
  async #rebuild(options: StartOptions): Promise<boolean> {
    try {
      const { ended } = await this.rebuilds.start(options);
      return (await ended)?.outcome === 'failed';
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.log.error({ err: error }, 'the rebuild could not be started');
      return true;
    }
  }
}
