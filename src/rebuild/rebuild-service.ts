import { setTimeout as pause } from 'node:timers/promises';
import { cleanUpAfterCrash } from './crash-cleanup.js';
import { LockUnavailableError } from './lock.js';
import type { Failure, Outcome } from './outcome.js';
import { Progress, type ProgressReport } from './progress.js';
import type { SeenDataset } from './rebuild.js';
import type { RebuildContext } from './rebuild-context.js';
import type { ResourceUsage, StartOptions } from './worker-messages.js';
import { WorkerFailedError, WorkerProcess, type WorkerEnd, type WORKER_LIMITS } from './worker-process.js';

/** Attempts to read the progress of another replica's rebuild, and the pause between them in milliseconds. */
const ATTEMPTS = 5;
const ATTEMPT_PAUSE_MS = 50;

/** Number of rebuilds by outcome. */
export interface RebuildCounts {
  rebuilt: number;
  unchanged: number;
  stopped: number;
  failed: number;
}

/** A rebuild that succeeded, even if nothing had changed. */
export interface Success {
  /** ISO 8601. */
  at: string;
  /** Duration of the last rebuild that built an index. */
  seconds: number | undefined;
}

/** How the last rebuild ended. */
export interface LastResult {
  /** Undefined after a success. */
  failure: Failure | undefined;
  /** When one last succeeded, even if nothing had changed (ISO 8601). */
  succeededAt: string | undefined;
}

/** The result of a request for a rebuild. */
export type StartResult = { progress: ProgressReport; lastFailure: Failure | undefined } & (
  | { accepted: true; outcome: Promise<Outcome> }
  /** A rebuild is already running, here or on another replica, with this progress. */
  | { accepted: false }
);

interface Options {
  /** Redacted in the logs of the workers. */
  secrets: readonly string[];
  onProgress?: ((report: ProgressReport) => void) | undefined;
  /** When workers are killed. */
  workerLimits?: typeof WORKER_LIMITS;
}

/** Runs rebuilds in worker processes, one at a time over all replicas. */
export class RebuildService {
  #worker: WorkerProcess | undefined;
  #outcome: Promise<Outcome> | undefined;
  #lastFailure: Failure | undefined;
  #lastSuccess: Success | undefined;
  #seen: SeenDataset | undefined;
  readonly counts: RebuildCounts = { rebuilt: 0, unchanged: 0, stopped: 0, failed: 0 };
  #isStopping = false;

  constructor(
    private readonly context: RebuildContext,
    private readonly options: Options,
  ) {}

  /** Progress of the rebuild of this process; undefined if none is running. */
  get progress(): ProgressReport | undefined {
    return this.#worker?.report;
  }

  /** Resource usage of the worker process. */
  get usage(): ResourceUsage | undefined {
    return this.#worker?.usage;
  }

  /** Why the last rebuild of this process failed; undefined after one that succeeded. */
  get lastFailure(): Failure | undefined {
    return this.#lastFailure;
  }

  /** The last rebuild of this process that succeeded. */
  get lastSuccess(): Success | undefined {
    return this.#lastSuccess;
  }

  /** The last result of any replica or command; without Redis, of this process. */
  async lastResult(): Promise<LastResult> {
    const { status } = this.context;
    if (status === undefined) return { failure: this.#lastFailure, succeededAt: this.#lastSuccess?.at };
    // Those of this process, if Redis does not respond.
    const succeededAt = (await status.lastSuccess()) ?? this.#lastSuccess?.at;
    const failure = (await status.lastFailure()) ?? this.#lastFailure;
    const isOver = failure !== undefined && succeededAt !== undefined && failure.at < succeededAt;
    return { failure: isOver ? undefined : failure, succeededAt };
  }

  /**
   * Starts a rebuild unless one is running. It continues in the background; its outcome is logged.
   * @throws {LockUnavailableError} if Redis cannot be used: it is unknown whether one is running.
   * @throws {WorkerFailedError} if the worker could not be started, which counts as a failed rebuild.
   */
  async start(options: StartOptions): Promise<StartResult> {
    const { status, lock } = this.context;
    // A worker that is still starting may find that another replica has the lock.
    await this.#worker?.answer.catch(() => undefined);
    const lastFailure = status === undefined ? this.lastFailure : await status.lastFailure();
    const seen = status === undefined ? this.#seen : await status.seen();
    const isHeldElsewhere = this.progress === undefined && (await lock.isHeld());
    // Another request may have started one here in the meantime.
    const running = isHeldElsewhere ? await this.#reportOfOther() : this.progress;
    if (running !== undefined) return { accepted: false, progress: running, lastFailure };

    if (this.#isStopping) throw new WorkerFailedError('the server is stopping');
    const { config, log } = this.context;
    const { secrets, onProgress, workerLimits } = this.options;
    const input = {
      config,
      options: { ...options, seen },
      startedAt: new Date(),
      logLevel: log.level,
      secrets,
    };
    const worker = new WorkerProcess(input, log, onProgress, workerLimits);
    this.#worker = worker;
    const outcome = this.#finish(worker);
    this.#outcome = outcome;
    const answer = await worker.answer.catch(async (error: unknown) => {
      // The failure must be recorded first.
      if ('stopped' in (await outcome)) return 'started' as const;
      throw error;
    });
    if (answer === 'started') return { accepted: true, outcome, progress: worker.report, lastFailure };
    this.#worker = undefined;
    if (answer instanceof LockUnavailableError) throw answer;
    return { accepted: false, progress: await this.#reportOfOther(), lastFailure };
  }

  /** Starts no more rebuilds, stops the running one before its flip, and waits for its cleanup. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#worker?.stop();
    await this.#outcome;
  }

  /** The rebuild that holds the lock may have no progress: it has just begun, is ending, or was killed. */
  async #reportOfOther(): Promise<ProgressReport> {
    for (let attempt = 1; ; attempt++) {
      const report = this.progress ?? (await this.context.status?.progress());
      if (report !== undefined) return report;
      if (attempt === ATTEMPTS) return new Progress(new Date()).report;
      await pause(ATTEMPT_PAUSE_MS);
    }
  }

  /** Waits for a worker to end and records the outcome. Never rejects. */
  async #finish(worker: WorkerProcess): Promise<Outcome> {
    const began = performance.now();
    const end = await worker.ended;
    if ('isRefused' in end) return { index: undefined };
    const outcome = await this.#outcomeOf(end, worker);
    if ('stopped' in outcome) this.counts.stopped++;
    else if ('failure' in outcome) {
      this.counts.failed++;
      this.#lastFailure = outcome.failure;
    } else {
      const { index } = outcome;
      this.counts[index === undefined ? 'unchanged' : 'rebuilt']++;
      this.#lastFailure = undefined;
      if (worker.seen !== undefined) {
        this.#seen = worker.seen;
        await this.context.status?.see(worker.seen);
      }
      const seconds = index === undefined ? this.#lastSuccess?.seconds : (performance.now() - began) / 1000;
      this.#lastSuccess = { at: new Date().toISOString(), seconds };
      await this.context.generations.refresh();
    }
    this.#worker = undefined;
    return outcome;
  }

  async #outcomeOf(end: Exclude<WorkerEnd, { isRefused: true }>, worker: WorkerProcess): Promise<Outcome> {
    if ('outcome' in end) return end.outcome;
    // A terminal sends Ctrl-C to the worker, too, and ends it if it is still starting.
    if (this.#isStopping && worker.lockOwner === undefined) return { stopped: true };
    return cleanUpAfterCrash(worker, end.error, this.context);
  }
}
