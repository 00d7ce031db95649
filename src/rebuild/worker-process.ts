import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { forwardLine, type Logger } from '../log.js';
import { LockUnavailableError } from './lock.js';
import type { Outcome } from './outcome.js';
import { Progress, type ProgressReport } from './progress.js';
import type { SeenDataset } from './rebuild.js';
import type { MessageFromWorker, MessageToWorker, ResourceUsage, WorkerInput } from './worker-messages.js';

/** Bundled into one file by `npm run build:worker`, also for a server that runs from source. */
const WORKER_PATH = import.meta.url.endsWith('.ts') ? '../../dist/rebuild/worker.cjs' : 'worker.cjs';
const WORKER = fileURLToPath(new URL(WORKER_PATH, import.meta.url));

/** Maximum heap of the worker, in megabytes. Package numbers and fingerprints are stored outside the heap. */
const HEAP_MB = 128;

/** After these times a worker is killed, in milliseconds. */
export const WORKER_LIMITS = {
  /** Without a message: it reports its progress four times a second. */
  silenceMs: 30_000,
  /** Still running after it was stopped. */
  stopMs: 8_750,
};

/** Checks for silence within `silenceMs`. Counted, so that a suspended server does not kill its worker. */
const SILENCE_CHECKS = 30;

/** The first response of a worker. After `started`, it holds the lock until `ended`. */
export type WorkerAnswer = 'started' | 'busy' | LockUnavailableError;

/** How a worker ended: after a rebuild, without the lock, or unexpectedly. */
export type WorkerEnd = { outcome: Outcome } | { error: WorkerFailedError } | { isRefused: true };

/** The worker could not be started, crashed, or was killed. */
export class WorkerFailedError extends Error {
  override readonly name = 'WorkerFailedError';
}

/** Runs one rebuild in a child process, which isolates its memory and garbage collection from the server's. */
export class WorkerProcess {
  /** The first response; rejects if the worker could not be started, or ended without one. */
  readonly answer: Promise<WorkerAnswer>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<WorkerEnd>;
  /** Undefined if it could not be started. */
  readonly #child: ChildProcess | undefined;
  #report: ProgressReport;
  #usage: ResourceUsage | undefined;
  #index: string | undefined;
  #lockOwner: string | undefined;
  #seen: SeenDataset | undefined;

  constructor(
    input: WorkerInput,
    log: Logger,
    onProgress?: (report: ProgressReport) => void,
    private readonly limits = WORKER_LIMITS,
  ) {
    this.#report = new Progress(input.startedAt).report;
    let child: ChildProcess;
    try {
      child = forkWorker();
    } catch (cause) {
      // Node emits most errors of a spawn and throws the others, such as ENOMEM.
      const error = couldNotStart(cause);
      this.ended = Promise.resolve({ error });
      this.answer = Promise.reject(error);
      return;
    }
    this.#child = child;
    let silentChecks = 0;
    const watching = setInterval(() => {
      if (++silentChecks > SILENCE_CHECKS) child.kill('SIGKILL');
    }, limits.silenceMs / SILENCE_CHECKS);
    let end: WorkerEnd | undefined;
    let answer: (answer: WorkerAnswer) => void = () => undefined;
    const answered = new Promise<WorkerAnswer>((resolve) => (answer = resolve));
    child.on('message', (message: MessageFromWorker) => {
      silentChecks = 0;
      if (message.type === 'log') forwardLine(log, message.line);
      else if (message.type === 'progress') {
        this.#usage = message.usage;
        this.#report = message.report;
        onProgress?.(message.report);
      } else if (message.type === 'index') this.#index = message.index;
      else if (message.type === 'seen') this.#seen = message.seen;
      else if (message.type === 'ended') end = { outcome: message.outcome };
      else {
        if (message.type === 'started') this.#lockOwner = message.lockOwner;
        else end = { isRefused: true };
        answer(message.type === 'lock-unavailable' ? new LockUnavailableError(message.reason) : message.type);
      }
    });
    this.ended = exitOf(child).then(
      (how) => end ?? { error: new WorkerFailedError(`the rebuild process ended unexpectedly (${how})`) },
      (cause: unknown) => ({ error: couldNotStart(cause) }),
    );
    void this.ended.then(() => clearInterval(watching));
    const failed = this.ended.then((ended): WorkerAnswer => {
      throw 'error' in ended
        ? ended.error
        : new WorkerFailedError('the rebuild process ended without a response');
    });
    this.answer = Promise.race([answered, failed]);
    this.#send({ type: 'start', input });
  }

  get report(): ProgressReport {
    return this.#report;
  }

  /** Undefined until its first report. */
  get usage(): ResourceUsage | undefined {
    return this.#usage;
  }

  /** The index that it builds; undefined until it has a name. */
  get index(): string | undefined {
    return this.#index;
  }

  /** The dataset that it did not build, because its bytes had not changed. */
  get seen(): SeenDataset | undefined {
    return this.#seen;
  }

  /** Its id as the owner of the lock; undefined until it holds the lock. */
  get lockOwner(): string | undefined {
    return this.#lockOwner;
  }

  /** Stops the rebuild before its flip. The worker cleans up, and is killed if that takes too long. */
  stop(): void {
    this.#send({ type: 'stop' });
    const late = setTimeout(() => this.#child?.kill('SIGKILL'), this.limits.stopMs);
    void this.ended.then(() => clearTimeout(late));
  }

  #send(message: MessageToWorker): void {
    // If the worker could not be started or has just ended, `ended` reports it.
    if (this.#child?.connected === true) this.#child.send(message, () => undefined);
  }
}

function forkWorker(): ChildProcess {
  return fork(WORKER, [], {
    execArgv: [...inheritedOptions(), `--max-old-space-size=${HEAP_MB}`],
    serialization: 'advanced',
    // Only Node's own crash reports go to standard error.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
}

/** Options of Node with a value of their own, or in the next argument, that are not for another process. */
const OWN_OPTION = /^--(inspect|env-file)/;
const OWN_VALUE_FOLLOWS = /^--(inspect-port|inspect-publish-uid|env-file|env-file-if-exists)$/;

/**
 * Node's options of this process, such as --use-openssl-ca, but not those that say what it runs, or open a port. It inherits the
 * variables of a file, which may be a pipe that was read to its end.
 */
function inheritedOptions(): string[] {
  const options = process.execArgv.filter(
    (option, i, all) => !OWN_OPTION.test(option) && !OWN_VALUE_FOLLOWS.test(all[i - 1] ?? ''),
  );
  const isProgram =
    WORKER_PATH !== 'worker.cjs' || options.some((option) => /^-(e|p|-eval|-print)\b/.test(option));
  return isProgram ? [] : options;
}

function couldNotStart(cause: unknown): WorkerFailedError {
  const { message } = cause as Error;
  return new WorkerFailedError(`the rebuild process could not be started: ${message}`, { cause });
}

/** Waits for the end of a process. @returns its signal or exit code. @throws why it could not be started. */
async function exitOf(child: ChildProcess): Promise<string> {
  const exited = once(child, 'exit') as Promise<[code: number | null, signal: NodeJS.Signals | null]>;
  // The last message may arrive after the process has exited.
  const [[code, signal]] = await Promise.all([exited, once(child, 'disconnect')]);
  return signal ?? `exit code ${code}`;
}
