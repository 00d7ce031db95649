import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PROJECT_FOLDER } from '../util/project-folder.js';
import type { RebuildOptions } from './pipeline.js';
import type { RebuildContext } from './rebuild-context.js';
import type { EndedRebuild, RebuildState } from './state.js';

/**
 * The program of `npm run rebuild` (`src/cli/rebuild.ts`). For servers, `scripts/build.sh` bundles it into a single
 * file, which starts twice as fast as separate files.
 */
const PROGRAM = fileURLToPath(new URL('dist/cli/rebuild.cjs', PROJECT_FOLDER));

/** Maximum heap of the process, in megabytes. Package numbers and hashes of names are stored outside the heap. */
const HEAP_MB = 128;

/** The process of the rebuild could not be started. */
export class ProcessFailedError extends Error {
  override readonly name = 'ProcessFailedError';
}

/** Options of a rebuild. Only the server itself sets `skipIf` and `minAgeMs`. */
export interface StartOptions extends Pick<RebuildOptions, 'force' | 'skipIf'> {
  /** Starts nothing if the last rebuild of any replica began less than this time ago. */
  minAgeMs?: number;
}

/** `ended` is undefined if no rebuild was started: another one is running, or the last one is too recent. */
interface StartResponse {
  state: RebuildState;
  ended: Promise<EndedRebuild> | undefined;
}

export interface RebuildServiceOptions {
  /** The environment variables that the configuration was read from. Rebuild processes inherit them. */
  env: NodeJS.ProcessEnv;
  /** Where the process writes its log: a file descriptor instead of the output of this process. */
  output?: number | undefined;
  /** Called with the state of its own rebuild every second. */
  onState?: ((state: RebuildState) => void) | undefined;
}

/** Takes the lock and starts the program of `npm run rebuild`, which keeps the lock until it ends. */
export class RebuildService {
  /** How the last rebuild of this server ended. */
  last: EndedRebuild | undefined;
  /** The last rebuild of this server that built an index. */
  lastBuilt: EndedRebuild | undefined;
  #child: ChildProcess | undefined;
  #ended: Promise<EndedRebuild> | undefined;
  #reading: Promise<RebuildState | undefined> | undefined;
  readonly counts = { rebuilt: 0, unchanged: 0, stopped: 0, failed: 0 };
  #isStopping = false;

  constructor(
    private readonly context: RebuildContext,
    private readonly options: RebuildServiceOptions,
  ) {}

  /** Whether this server runs a rebuild. */
  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /**
   * How the rebuilds of this registry stand, on whatever replica. Undefined if Elasticsearch does not respond. The
   * metrics of a scrape share one request.
   */
  state(): Promise<RebuildState | undefined> {
    this.#reading ??= this.context.states
      .read()
      .catch(() => undefined)
      .finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  /**
   * Starts a rebuild unless one is running. It continues in the background; its outcome is logged.
   * @throws {StateUnavailableError} if the lock cannot be taken: it is unknown whether a rebuild is running.
   * @throws {ProcessFailedError} if the server is stopping, or the process could not be started.
   */
  async start({ minAgeMs, ...options }: StartOptions): Promise<StartResponse> {
    if (this.#isStopping) throw new ProcessFailedError('the server is stopping');
    const { states } = this.context;
    const owner = randomUUID();
    const state = await states.acquire(owner, { minAgeMs });
    if (state.owner !== owner) return { state, ended: undefined };
    try {
      const child = this.#spawn(owner, options);
      this.#child = child;
      await once(child, 'spawn');
      this.#ended = this.#watch(child, owner, state);
      return { state, ended: this.#ended };
    } catch (cause) {
      this.#child = undefined;
      const reason = `the rebuild process could not be started: ${(cause as Error).message}`;
      await this.#fail(owner, reason);
      throw new ProcessFailedError(reason, { cause });
    }
  }

  /** Starts no more rebuilds, stops the running one before its flip, and waits for its end. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#child?.kill('SIGTERM');
    await this.#ended;
  }

  #spawn(owner: string, { force, skipIf }: Pick<StartOptions, 'force' | 'skipIf'>): ChildProcess {
    const { env, output = 'inherit' } = this.options;
    const args = ['--owner', owner, ...(force ? ['--force'] : []), ...(skipIf ? ['--skip-if', skipIf] : [])];
    const { level } = this.context.log;
    return spawn(process.execPath, [`--max-old-space-size=${HEAP_MB}`, PROGRAM, ...args], {
      env: { ...env, LOG_LEVEL: level },
      stdio: ['ignore', output, output],
    });
  }

  /** Renews the lock until the process reports, watches the rebuild, and records its end. Never rejects. */
  async #watch(child: ChildProcess, owner: string, started: RebuildState): Promise<EndedRebuild> {
    const { snapshots, states } = this.context;
    const exit = once(child, 'exit') as Promise<[code: number | null, signal: NodeJS.Signals | null]>;
    const exited = new AbortController();
    void exit.then(() => exited.abort());
    let state = started;
    this.options.onState?.(state);
    const began = performance.now();
    while (await pause(states.times.report, true, { signal: exited.signal }).catch(() => false)) {
      const isStarting = state.memory_bytes === undefined && performance.now() - began < states.times.expiry;
      const reading: Promise<RebuildState | undefined> = isStarting ? states.report(owner) : states.read();
      state = (await reading.catch(() => undefined)) ?? state;
      if (state.owner === owner) this.options.onState?.(state);
    }
    const [code, signal] = await exit;
    const recorded = await states.ended(owner).catch(() => undefined);
    const how = signal ?? `exit code ${code}`;
    const ended =
      recorded ?? (await this.#fail(owner, `the rebuild process ended by ${how} while ${state.phase}`));
    this.counts[ended.outcome]++;
    this.last = ended;
    if (ended.outcome === 'rebuilt') this.lastBuilt = ended;
    await snapshots.refresh();
    // Another one may have begun beside a process that was suspended.
    if (this.#child === child) this.#child = undefined;
    return ended;
  }

  /** Records the end of a process that has not recorded it. Its lock is released; else it expires. Never rejects. */
  async #fail(owner: string, reason: string): Promise<EndedRebuild> {
    const { states, log } = this.context;
    // A terminal sends Ctrl-C to the process, too, which may not be able to handle it yet.
    const outcome = this.#isStopping ? 'stopped' : 'failed';
    const ended = { outcome, ...(outcome === 'failed' && { reason }) } as const;
    await states.release(owner, ended).catch((error: unknown) => {
      log.warn({ err: error }, 'the rebuild lock could not be released; it will expire');
    });
    if (outcome === 'failed') log.error({ reason }, 'the rebuild failed');
    return { ...ended, ended_at: Date.now() };
  }
}
