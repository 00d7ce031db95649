import { retry } from '../publish/retry.js';
import type { Logger } from '../util/log.js';
import type { Report } from './progress.js';
import type { Ending, RebuildStates } from './state.js';

/** The reason of a failure if another rebuild has taken the lock. */
const LOCK_LOST = 'the lock was lost: another rebuild may be running';

/**
 * Time after which a release is given up, in milliseconds. The outcome of a rebuild is recorded with it, so it outlasts
 * a restart of Elasticsearch.
 */
const RELEASE_MS = 60_000;

/** A lock that this process has acquired. Reports every second until it is released, which renews the lock. */
export class HeldLock {
  readonly #lost = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #reports = Promise.resolve();
  #waiting = 0;
  #isFailing = false;

  /** @param progress how far the work of the owner is. */
  constructor(
    private readonly states: RebuildStates,
    private readonly owner: string,
    private readonly log: Logger,
    private readonly progress?: () => Report,
  ) {
    this.#timer = setInterval(() => {
      if (this.#waiting === 0) void this.report();
    }, states.times.report);
  }

  /** Aborts when another owner has the lock. While Elasticsearch does not respond, nobody can take it. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Never rejects: the next report tries again. */
  report(): Promise<void> {
    this.#waiting++;
    this.#reports = this.#reports.then(() => this.#send()).finally(() => this.#waiting--);
    return this.#reports;
  }

  async #send(): Promise<void> {
    const { user, system } = process.cpuUsage();
    const usage = { memory_bytes: process.memoryUsage.rss(), cpu_seconds: (user + system) / 1e6 };
    try {
      const state = await this.states.report(this.owner, { ...this.progress?.(), ...usage });
      this.#isFailing = false;
      if (state === undefined) this.#lost.abort(new Error(LOCK_LOST));
    } catch (error) {
      if (!this.#isFailing) this.log.warn({ err: error }, 'the state of the rebuild could not be written');
      this.#isFailing = true;
    }
  }

  /** Retries while Elasticsearch is unavailable. Never rejects: a lock that cannot be released expires. */
  async release(ended?: Ending): Promise<void> {
    clearInterval(this.#timer);
    await this.#reports;
    const options = { signal: new AbortController().signal, log: this.log, stallMs: RELEASE_MS };
    await retry(() => this.states.release(this.owner, ended), options).catch((error: unknown) => {
      this.log.warn({ err: error }, 'the rebuild lock could not be released; it will expire');
    });
  }
}
