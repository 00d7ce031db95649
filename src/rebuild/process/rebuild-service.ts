import { setTimeout as pause } from 'node:timers/promises';
import { LockUnavailableError } from './lock.js';
import { failed, type Failure, type Outcome } from './outcome.js';
import { Progress, type ProgressReport } from './progress.js';
import type { RebuildContext } from '../rebuild-context.js';
import {
  ProcessFailedError,
  RebuildProcess,
  type PROCESS_LIMITS,
  type StartOptions,
} from './rebuild-process.js';
import { discardIndex } from '../steps/prune.js';

/** Number of attempts to read the progress of another replica's rebuild, and the pause between them in milliseconds. */
const ATTEMPTS = 5;
const ATTEMPT_PAUSE_MS = 50;

/** The result of a request for a rebuild. */
export type StartResponse = { progress: ProgressReport; lastFailure: Failure | undefined } & (
  | { accepted: true; outcome: Promise<Outcome> }
  /** A rebuild is already running, here or on another replica. `progress` is the progress of that rebuild. */
  | { accepted: false }
);

interface Options {
  /** The environment variables of the server, which its rebuild processes inherit. */
  env: NodeJS.ProcessEnv;
  onProgress?: ((report: ProgressReport) => void) | undefined;
  /** Times after which processes are killed. */
  limits?: typeof PROCESS_LIMITS;
}

/** Runs each rebuild in a separate process. With Redis, one rebuild runs at a time across all replicas. */
export class RebuildService {
  #process: RebuildProcess | undefined;
  #outcome: Promise<Outcome> | undefined;
  #lastFailure: Failure | undefined;
  #lastSuccess: { at: string; seconds: number | undefined } | undefined;
  readonly counts = { rebuilt: 0, unchanged: 0, stopped: 0, failed: 0 };
  #isStopping = false;

  constructor(
    private readonly context: RebuildContext,
    private readonly options: Options,
  ) {}

  /** Progress of the rebuild that this server is running; undefined if there is none. */
  get progress(): ProgressReport | undefined {
    return this.#process?.state.report;
  }

  get usage() {
    return this.#process?.state.usage;
  }

  /** Why the last rebuild of this server failed; undefined after a success. */
  get lastFailure(): Failure | undefined {
    return this.#lastFailure;
  }

  /**
   * `at` is when a rebuild of this server last succeeded, even if nothing had changed (ISO 8601). `seconds` is the
   * duration of its last rebuild that built an index.
   */
  get lastSuccess() {
    return this.#lastSuccess;
  }

  /**
   * The outcome of the last rebuild by any replica or command; without Redis, by this server.
   * @returns `failure`, undefined after a success, and `succeededAt` (ISO 8601), the last success, even if unchanged.
   */
  async lastOutcome() {
    const { status } = this.context;
    if (status === undefined) return { failure: this.#lastFailure, succeededAt: this.#lastSuccess?.at };
    // Values that Redis does not return are taken from this process.
    const succeededAt = (await status.lastSuccess()) ?? this.#lastSuccess?.at;
    const failure = (await status.lastFailure()) ?? this.#lastFailure;
    const isOver = failure !== undefined && succeededAt !== undefined && failure.at < succeededAt;
    return { failure: isOver ? undefined : failure, succeededAt };
  }

  /** Whether this process starts the refresh of this interval. Only one of several replicas requests the dataset. */
  async claimsRefresh(intervalSeconds: number): Promise<boolean> {
    // If Redis does not respond, this replica starts the refresh, and `start` throws the reason.
    return (await this.context.status?.claimRefresh(intervalSeconds)) ?? true;
  }

  /**
   * Starts a rebuild unless one is running. It continues in the background; its outcome is logged.
   * @throws {LockUnavailableError} if Redis cannot be used: it is unknown whether a rebuild is running.
   * @throws {ProcessFailedError} if the server is stopping, or if the rebuild process could not be started or ended
   * without a response. If the server is stopping, no failure is counted.
   */
  async start(options: StartOptions): Promise<StartResponse> {
    const { status, lock } = this.context;
    // A process that is still starting may yet find that another replica has the lock.
    await this.#process?.response.catch(() => undefined);
    const lastFailure = status === undefined ? this.lastFailure : await status.lastFailure();
    if (this.progress === undefined && (await lock?.isHeld()) === true) {
      return { accepted: false, progress: await this.#reportOfOther(), lastFailure };
    }
    // Another request may have started a rebuild meanwhile. No `await` follows until `#process` is set, so only one of
    // two requests starts a process.
    if (this.progress !== undefined) return { accepted: false, progress: this.progress, lastFailure };
    if (this.#isStopping) throw new ProcessFailedError('the server is stopping');
    const { env, onProgress, limits } = this.options;
    const child = new RebuildProcess(env, options, this.context.log, onProgress, limits);
    this.#process = child;
    const outcome = this.#finish(child);
    this.#outcome = outcome;
    const response = await child.response.catch(async (error: unknown) => {
      // The failure must be recorded before the caller sees the error.
      if ('stopped' in (await outcome)) return 'started' as const;
      throw error;
    });
    if (response === 'started') return { accepted: true, outcome, progress: child.state.report, lastFailure };
    this.#process = undefined;
    if (response instanceof LockUnavailableError) throw response;
    return { accepted: false, progress: await this.#reportOfOther(), lastFailure };
  }

  /** Starts no more rebuilds, stops the running one before its flip, and waits for its cleanup. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#process?.stop();
    await this.#outcome;
  }

  /**
   * The progress of the rebuild that holds the lock. If several attempts find no published progress, returns initial
   * progress that starts now. The rebuild with the lock may have just begun, be ending, or have been killed.
   */
  async #reportOfOther(): Promise<ProgressReport> {
    for (let attempt = 1; ; attempt++) {
      const report = this.progress ?? (await this.context.status?.progress());
      if (report !== undefined) return report;
      if (attempt === ATTEMPTS) return new Progress(new Date()).report;
      await pause(ATTEMPT_PAUSE_MS);
    }
  }

  /** Waits for a process to end and records the outcome. Never rejects. */
  async #finish(child: RebuildProcess): Promise<Outcome> {
    const began = performance.now();
    const end = await child.ended;
    if ('isRefused' in end) return { index: undefined };
    const outcome = 'outcome' in end ? end.outcome : await this.#cleanUpAfterCrash(child, end.error);
    if ('stopped' in outcome) this.counts.stopped++;
    else if ('failure' in outcome) {
      this.counts.failed++;
      this.#lastFailure = outcome.failure;
    } else {
      const { index } = outcome;
      this.counts[index === undefined ? 'unchanged' : 'rebuilt']++;
      this.#lastFailure = undefined;
      const seconds = index === undefined ? this.#lastSuccess?.seconds : (performance.now() - began) / 1000;
      this.#lastSuccess = { at: new Date().toISOString(), seconds };
      await this.context.snapshots.refresh();
    }
    this.#process = undefined;
    return outcome;
  }

  /** The lock of a crashed or killed process is not released: it expires. */
  async #cleanUpAfterCrash({ state }: RebuildProcess, error: Error): Promise<Outcome> {
    const { index, lockOwner, report } = state;
    // A terminal sends Ctrl-C to the rebuild process, too. While that process is starting, the signal ends it.
    if (this.#isStopping && lockOwner === undefined) return { stopped: true };
    const { alias, client, config, snapshots, lock, log, status } = this.context;
    await snapshots.refresh();
    const isServed = index !== undefined && snapshots.current?.index === index;
    // Elasticsearch may still execute a flip that it has received.
    const isUncertain = report.phase === 'flipping';
    const failure = isServed ? undefined : failed(error, config.secrets);
    if (isServed)
      log.warn({ err: error, index }, 'the rebuild process crashed after the flip; its snapshot is served');
    else {
      log.error(
        { err: error, index, phase: report.phase },
        `the rebuild failed; ${isUncertain ? 'it is unknown which snapshot is served' : 'what is served has not changed'}`,
      );
    }
    // Once the lock has expired, the status may belong to another rebuild.
    const mayPublish =
      lockOwner === undefined || (await lock?.isHeldBy(lockOwner).catch(() => false)) === true;
    if (mayPublish) await status?.end(failure?.failure);
    if (failure === undefined) return { index };
    if (index !== undefined) await discardIndex(client, alias, index, log);
    return failure;
  }
}
