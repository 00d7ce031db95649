import type { Generations } from '../catalog/generation.js';
import { Progress, type ProgressReport } from './progress.js';
import { rebuild, type RebuildDeps } from './rebuild.js';

/** Pause before a first build that failed is tried again: doubled each time, within these, in milliseconds. */
const FIRST_RETRY_MS = 5_000;
const LAST_RETRY_MS = 300_000;
/** How often to look whether a first build is needed, in milliseconds. */
const COLD_START_POLL_MS = 500;

export interface Failure {
  /** ISO 8601. */
  at: string;
  reason: string;
}

/** `accepted`: a rebuild has begun. Otherwise one is running, and this is how far it is. */
export interface StartAnswer {
  accepted: boolean;
  progress: ProgressReport;
}

/** Runs rebuilds in the background, one at a time in this process. */
export class Rebuilds {
  #running: { progress: Progress; done: Promise<void> } | undefined;
  #lastFailure: Failure | undefined;
  readonly #stopping = new AbortController();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(
    private readonly deps: RebuildDeps,
    private readonly generations: Generations,
    private readonly listener?: (report: ProgressReport) => void,
  ) {}

  /** How far the running rebuild is, or undefined where none runs. */
  get progress(): ProgressReport | undefined {
    return this.#running?.progress.report;
  }

  /** Why the last rebuild failed; undefined after one that succeeded. */
  get lastFailure(): Failure | undefined {
    return this.#lastFailure;
  }

  /** Begins a rebuild unless one is running. It goes on in the background; its outcome is logged. */
  start(options: { force: boolean; skipUnchanged: boolean }): StartAnswer {
    if (this.#running !== undefined) return { accepted: false, progress: this.#running.progress.report };
    const progress = new Progress(new Date(), this.listener);
    const done = this.#run(progress, options).finally(() => (this.#running = undefined));
    this.#running = { progress, done };
    return { accepted: true, progress: progress.report };
  }

  /**
   * Builds by itself as long as there is no complete index (a cold start), with growing pauses while that fails; and
   * every `intervalSeconds`, unless it is 0, when the dataset has changed.
   */
  automate(intervalSeconds: number): void {
    let retryMs = FIRST_RETRY_MS;
    const coldStart = async () => {
      if (this.generations.engine !== 'absent') {
        retryMs = FIRST_RETRY_MS;
        this.#after(COLD_START_POLL_MS, coldStart);
        return;
      }
      this.start({ force: false, skipUnchanged: false });
      await this.#running?.done;
      const failed = this.#lastFailure !== undefined;
      this.#after(failed ? retryMs : COLD_START_POLL_MS, coldStart);
      if (failed) retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    };
    void coldStart();

    if (intervalSeconds === 0) return;
    const refresh = async () => {
      this.start({ force: false, skipUnchanged: true });
      await this.#running?.done;
      this.#after(intervalSeconds * 1000, refresh);
    };
    this.#after(intervalSeconds * 1000, refresh);
  }

  /** Begins no more rebuilds, stops the running one before its flip, and waits until it has cleaned up. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server is stopping'));
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#running?.done;
  }

  async #run(progress: Progress, options: { force: boolean; skipUnchanged: boolean }): Promise<void> {
    const { log } = this.deps;
    const began = Date.now();
    try {
      // A signal of its own, so that listeners do not pile up on the one that lives as long as the server.
      const signal = AbortSignal.any([this.#stopping.signal]);
      const index = await rebuild(this.deps, { ...options, progress, signal });
      this.#lastFailure = undefined;
      await this.generations.refresh();
      const seconds = (Date.now() - began) / 1000;
      if (index === undefined) log.info('the dataset has not changed: nothing to rebuild');
      else log.info({ index, seconds }, 'rebuilt');
    } catch (error) {
      if (this.#stopping.signal.aborted) {
        log.info({ phase: progress.report.phase }, 'the rebuild was stopped; what was served before stays');
        return;
      }
      this.#lastFailure = { at: new Date().toISOString(), reason: (error as Error).message };
      log.error(
        { err: error, phase: progress.report.phase },
        'the rebuild failed; what was served before is served on',
      );
    }
  }

  #after(ms: number, action: () => Promise<void>): void {
    if (this.#stopping.signal.aborted) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void action();
    }, ms);
    this.#timers.add(timer);
  }
}
