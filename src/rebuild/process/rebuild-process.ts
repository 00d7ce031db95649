import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { forwardLine, type Logger } from '../../util/log.js';
import { PROJECT_FOLDER } from '../../util/project-folder.js';
import { LockUnavailableError } from './lock.js';
import type { Outcome } from './outcome.js';
import { Progress, type ProgressReport } from './progress.js';
import type { RebuildOptions } from '../pipeline.js';

/**
 * The program of `npm run rebuild` (`src/cli/rebuild.ts`). For servers, `scripts/build.sh` bundles it into a single
 * file, which starts twice as fast as separate files.
 */
const PROGRAM = fileURLToPath(new URL('dist/cli/rebuild.cjs', PROJECT_FOLDER));

/** Maximum heap of the process, in megabytes. Package numbers and hashes of names are stored outside the heap. */
const HEAP_MB = 128;

/** Times after which the process is killed, in milliseconds. */
export const PROCESS_LIMITS = {
  /** Time without a message; the process reports its progress four times a second. */
  silenceMs: 30_000,
  /** Time that the process has to end after a stop. */
  stopMs: 8_750,
};

/**
 * Number of checks within `silenceMs`. Checks are counted, and the time is not measured. Otherwise, a server that
 * resumes after a suspension would kill the process.
 */
const SILENCE_CHECKS = 30;

/** Options of a rebuild. Only the server sets `skipIf`. */
export type StartOptions = Pick<RebuildOptions, 'force' | 'skipIf'>;

/** The state of a rebuild, as far as the server knows it. */
export interface RebuildState {
  report: ProgressReport;
  /** Resident memory, and processor time so far. Undefined until the first report of the process. */
  usage?: { memoryBytes: number; cpuSeconds: number };
  /** Id of the owner of the lock; undefined until the process holds the lock. */
  lockOwner?: string;
  /** The index being built; undefined until it has a name. */
  index?: string;
}

/** Messages of the rebuild process to its server, on Node's IPC channel. */
export type RebuildMessage =
  /** One line of the log, with the newline. */
  | { type: 'log'; line: string }
  /** The changed part of the state. The progress is sent several times a second, as a heartbeat. */
  | { type: 'state'; changed: Partial<RebuildState> }
  /** The process holds the lock and begins. */
  | { type: 'started' }
  /** Another rebuild holds the lock. */
  | { type: 'busy' }
  /** The state of the lock is unknown. */
  | { type: 'lock-unavailable'; reason: string }
  /** The process has cleaned up and released the lock. */
  | { type: 'ended'; outcome: Outcome };

/** The first message of the process about the lock. After `started`, the process holds the lock until `ended`. */
export type FirstResponse = 'started' | 'busy' | LockUnavailableError;

/** How the process ended: after a rebuild, without the lock, or unexpectedly. */
type ProcessEnd = { outcome: Outcome } | { error: ProcessFailedError } | { isRefused: true };

/** The process could not be started, crashed, or was killed. */
export class ProcessFailedError extends Error {
  override readonly name = 'ProcessFailedError';
}

/** A separate process does not affect the memory and garbage collection of the server. */
export class RebuildProcess {
  /** Rejects if the process could not be started, or ended without a response. */
  readonly response: Promise<FirstResponse>;
  readonly ended: Promise<ProcessEnd>;
  readonly state: Readonly<RebuildState> = { report: new Progress(new Date()).report };
  /** Undefined if the process could not be started. */
  readonly #child: ChildProcess | undefined;

  /** @param env the environment variables of the server, which the process inherits. */
  constructor(
    env: NodeJS.ProcessEnv,
    options: StartOptions,
    log: Logger,
    onProgress?: (report: ProgressReport) => void,
    private readonly limits = PROCESS_LIMITS,
  ) {
    let child: ChildProcess;
    try {
      child = start(env, options, log);
    } catch (cause) {
      // Node emits most errors of a spawn, but throws some, such as ENOMEM.
      const error = couldNotStart(cause);
      this.ended = Promise.resolve({ error });
      this.response = Promise.reject(error);
      return;
    }
    this.#child = child;
    let silentChecks = 0;
    const watching = setInterval(() => {
      if (++silentChecks > SILENCE_CHECKS) child.kill('SIGKILL');
    }, limits.silenceMs / SILENCE_CHECKS);
    let end: ProcessEnd | undefined;
    let respond: (response: FirstResponse) => void = () => undefined;
    const responded = new Promise<FirstResponse>((resolve) => (respond = resolve));
    child.on('message', (message: RebuildMessage) => {
      silentChecks = 0;
      if (message.type === 'log') forwardLine(log, message.line);
      else if (message.type === 'state') {
        Object.assign(this.state, message.changed);
        if (message.changed.report !== undefined) onProgress?.(message.changed.report);
      } else if (message.type === 'ended') end = { outcome: message.outcome };
      else {
        if (message.type !== 'started') end = { isRefused: true };
        respond(
          message.type === 'lock-unavailable' ? new LockUnavailableError(message.reason) : message.type,
        );
      }
    });
    this.ended = exitOf(child).then(
      (how) => end ?? { error: new ProcessFailedError(`the rebuild process ended unexpectedly (${how})`) },
      (cause: unknown) => ({ error: couldNotStart(cause) }),
    );
    void this.ended.then(() => clearInterval(watching));
    const failed = this.ended.then((ended): FirstResponse => {
      throw 'error' in ended
        ? ended.error
        : new ProcessFailedError('the rebuild process ended without a response');
    });
    this.response = Promise.race([responded, failed]);
  }

  /** Stops the rebuild before its flip. The process cleans up, and is killed if that takes too long. */
  stop(): void {
    this.#child?.kill('SIGTERM');
    const late = setTimeout(() => this.#child?.kill('SIGKILL'), this.limits.stopMs);
    void this.ended.then(() => clearTimeout(late));
  }
}

function start(env: NodeJS.ProcessEnv, { force, skipIf }: StartOptions, log: Logger): ChildProcess {
  const args = [...(force ? ['--force'] : []), ...(skipIf === undefined ? [] : ['--skip-if', skipIf])];
  return fork(PROGRAM, args, {
    env: { ...env, LOG_LEVEL: log.level },
    execArgv: [...inheritedOptions(), `--max-old-space-size=${HEAP_MB}`],
    // Only reports of crashes go to standard error.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
}

/** Options of Node that the rebuild process must not inherit, and the subset whose value may be the next argument. */
const NOT_INHERITED = /^--(inspect|env-file)/;
const OWN_VALUE_FOLLOWS = /^--(inspect-port|inspect-publish-uid|env-file|env-file-if-exists)$/;

/**
 * The options of Node that the rebuild process inherits, such as --use-openssl-ca. Options that open a port are left
 * out. `--env-file` is left out, too: the variables are inherited, and the file may be a pipe that was read to its end.
 * If this process runs a TypeScript source or `node -e`, no option is inherited.
 */
function inheritedOptions(): string[] {
  const options = process.execArgv.filter(
    (option, i, all) => !NOT_INHERITED.test(option) && !OWN_VALUE_FOLLOWS.test(all[i - 1] ?? ''),
  );
  const isSource = import.meta.url.endsWith('.ts');
  return isSource || options.some((option) => /^-(e|p|-eval|-print)\b/.test(option)) ? [] : options;
}

function couldNotStart(cause: unknown): ProcessFailedError {
  const { message } = cause as Error;
  return new ProcessFailedError(`the rebuild process could not be started: ${message}`, { cause });
}

/** @returns the signal or exit code of the process. @throws the error if it could not be started. */
async function exitOf(child: ChildProcess): Promise<string> {
  const exited = once(child, 'exit') as Promise<[code: number | null, signal: NodeJS.Signals | null]>;
  // The last message may arrive after the process has exited.
  const [[code, signal]] = await Promise.all([exited, once(child, 'disconnect')]);
  return signal ?? `exit code ${code}`;
}
