import { setTimeout as pause } from 'node:timers/promises';
import type { Generations } from '../catalog/generation.js';
import type { Board, Failure } from './board.js';
import type { HeldLock, RebuildLock } from './lock.js';
import { Progress, type ProgressReport } from './progress.js';
import { publicReason } from './failure-reason.js';
import { rebuild, type RebuildDeps, type RebuildOptions } from './rebuild.js';

/** Pause before a first build that failed is tried again: doubled each time, within these, in milliseconds. */
const FIRST_RETRY_MS = 5_000;
const LAST_RETRY_MS = 300_000;
/** How often to look whether a first build is needed, in milliseconds. */
const COLD_START_POLL_MS = 500;

/** How often to ask who has the lock and says nothing of its rebuild, and the pause between, in milliseconds. */
const ATTEMPTS = 5;
const ATTEMPT_PAUSE_MS = 50;

/** How a rebuild ended: with a new index, with nothing to do (undefined), stopped, or failed. */
export type Outcome = { index: string | undefined } | { stopped: true } | { failure: Failure };

/** How many rebuilds have ended how. */
export interface RebuildCounts {
  rebuilt: number;
  unchanged: number;
  stopped: number;
  failed: number;
}

/** The end of a rebuild that went well, be it that nothing had changed. */
export interface Success {
  /** ISO 8601. */
  at: string;
  /** How long the last one took that built an index. */
  seconds: number | undefined;
}

/** What became of the wish to rebuild. */
export type StartAnswer = { progress: ProgressReport; lastFailure: Failure | undefined } & (
  | { accepted: true; outcome: Promise<Outcome> }
  /** One is running, here or on another replica, and this is how far it is. */
  | { accepted: false }
);

export type StartOptions = Pick<RebuildOptions, 'force' | 'unless'>;

interface Deps extends RebuildDeps {
  lock: RebuildLock;
  board: Board;
  generations: Generations;
}

/** Runs rebuilds in the background, one at a time over all replicas. */
export class Rebuilds {
  #running: { progress: Progress; outcome: Promise<Outcome> } | undefined;
  #lastFailure: Failure | undefined;
  #lastSuccess: Success | undefined;
  readonly counts: RebuildCounts = { rebuilt: 0, unchanged: 0, stopped: 0, failed: 0 };
  readonly #stopping = new AbortController();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(
    private readonly deps: Deps,
    private readonly listener?: (report: ProgressReport) => void,
  ) {}

  /** How far the rebuild of this process is, or undefined where none runs. */
  get progress(): ProgressReport | undefined {
    return this.#running?.progress.report;
  }

  /** Why the last rebuild of this process failed; undefined after one that succeeded. */
  get lastFailure(): Failure | undefined {
    return this.#lastFailure;
  }

  /** The last rebuild of this process that went well. */
  get lastSuccess(): Success | undefined {
    return this.#lastSuccess;
  }

  /**
   * Begins a rebuild unless one is running. It goes on in the background; its outcome is logged.
   * @throws {LockUnavailable} where that cannot be told.
   */
  async start(options: StartOptions): Promise<StartAnswer> {
    const { lock, board } = this.deps;
    const lastFailure = await board.lastFailure();
    for (let attempt = 1; ; attempt++) {
      const held = await lock.acquire();
      if (held !== undefined) {
        const progress = new Progress(new Date(), this.listener);
        const outcome = this.#run(held, progress, options);
        this.#running = { progress, outcome };
        return { accepted: true, outcome, progress: progress.report, lastFailure };
      }
      const report = this.progress ?? (await board.progress());
      if (report !== undefined) return { accepted: false, progress: report, lastFailure };
      // It has the lock and says nothing: it has only just begun, or is ending, or is gone, and its lock will end.
      if (attempt === ATTEMPTS) {
        return { accepted: false, progress: new Progress(new Date()).report, lastFailure };
      }
      await pause(ATTEMPT_PAUSE_MS);
    }
  }

  /**
   * Builds by itself as long as there is no complete index (a cold start), with growing pauses while that fails; and
   * every `intervalSeconds`, unless it is 0, when the dataset has changed.
   */
  automate(intervalSeconds: number): void {
    let retryMs = FIRST_RETRY_MS;
    const coldStart = async () => {
      const { engine } = this.deps.generations;
      const failed = engine === 'absent' && (await this.#attempt({ force: false, unless: 'served' }));
      this.#after(failed ? retryMs : COLD_START_POLL_MS, coldStart);
      if (engine !== 'absent') retryMs = FIRST_RETRY_MS;
      if (failed) retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    };
    void coldStart();

    if (intervalSeconds === 0) return;
    const refresh = async () => {
      await this.#attempt({ force: false, unless: 'unchanged' });
      this.#after(intervalSeconds * 1000, refresh);
    };
    this.#after(intervalSeconds * 1000, refresh);
  }

  /** Begins no more rebuilds, stops the running one before its flip, and waits until it has cleaned up. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server is stopping'));
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#running?.outcome;
  }

  /** Rebuilds where no other replica does, and waits for the end. @returns whether that failed. */
  async #attempt(options: StartOptions): Promise<boolean> {
    try {
      const answer = await this.start(options);
      return answer.accepted && 'failure' in (await answer.outcome);
    } catch (error) {
      this.deps.log.error({ err: error }, 'no rebuild could be begun');
      return true;
    }
  }

  /** Never rejects. */
  async #run(held: HeldLock, progress: Progress, options: StartOptions): Promise<Outcome> {
    const { log, board, generations } = this.deps;
    const unfollow = board.follow(() => progress.report);
    const began = Date.now();
    try {
      const signal = AbortSignal.any([this.#stopping.signal, held.lost]);
      signal.throwIfAborted();
      const index = await rebuild(this.deps, { ...options, progress, signal });
      this.#lastFailure = undefined;
      await generations.refresh();
      const at = new Date();
      const seconds = index === undefined ? this.#lastSuccess?.seconds : (at.getTime() - began) / 1000;
      this.#lastSuccess = { at: at.toISOString(), seconds };
      this.counts[index === undefined ? 'unchanged' : 'rebuilt']++;
      if (index === undefined) log.info('nothing to rebuild');
      else log.info({ index, seconds }, 'rebuilt');
      await board.end(undefined);
      return { index };
    } catch (error) {
      if (this.#stopping.signal.aborted) {
        this.counts.stopped++;
        log.info({ phase: progress.report.phase }, 'the rebuild was stopped; what was served before stays');
        return { stopped: true };
      }
      const cause = (held.lost.aborted ? held.lost.reason : error) as Error;
      const reason = publicReason(cause);
      const failure = { at: new Date().toISOString(), reason };
      this.counts.failed++;
      this.#lastFailure = failure;
      log.error(
        { err: error, reason, phase: progress.report.phase },
        'the rebuild failed; what was served before is served on',
      );
      await board.end(failure);
      return { failure };
    } finally {
      await unfollow();
      await held.release();
      // The lock is free: another rebuild may have begun here already.
      if (this.#running?.progress === progress) this.#running = undefined;
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
