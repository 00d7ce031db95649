import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { SetupError } from './service.js';
import type { Identity } from './paths.js';

/** How long a program may take to end by itself before it is killed, in milliseconds. */
const STOP_MS = 30_000;

/** How much of its output a person is shown. */
const LAST_LINES = 5;

/**
 * Runs "$@" until it ends or standard input closes. The latter happens also when this process is killed, so that no
 * engine is ever left behind.
 */
const SUPERVISOR = `
exec 3<&0
"$@" </dev/null 3<&- & program=$!
(cat <&3 >/dev/null; kill -TERM "$program" 2>/dev/null) & watcher=$!
wait "$program"; code=$?
kill "$watcher" 2>/dev/null
exit "$code"`;

interface ProgramOptions {
  cwd: string;
  env: NodeJS.ProcessEnv;
  runAs: Identity | undefined;
  /** Where its output goes. */
  logFile: string;
}

/** Why a program did not get ready, in few lines for the person at the terminal; `output` is all that it said. */
export class ProcessError extends SetupError {
  constructor(
    message: string,
    readonly output: string,
  ) {
    super(message);
  }
}

/** A program that ends with this process, and not by a Ctrl-C that is meant for this process. */
export class ManagedProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  constructor(
    command: string[],
    private readonly options: ProgramOptions,
  ) {
    const { cwd, env, runAs, logFile } = options;
    const output = openSync(logFile, 'w');
    this.#child = spawn('/bin/sh', ['-c', SUPERVISOR, 'supervisor', ...command], {
      cwd,
      env,
      ...runAs,
      // A process group of its own: a terminal's Ctrl-C does not reach it, and it can be killed whole.
      detached: true,
      stdio: ['pipe', output, output],
    });
    closeSync(output);
    this.#exited = once(this.#child, 'exit');
    this.#exited.catch(() => undefined);
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Lets it end in good order, and kills it where it does not. */
  async stop(): Promise<void> {
    if (!this.running) return;
    this.#child.stdin?.end();
    const late = setTimeout(() => void this.signal('SIGKILL'), STOP_MS);
    await this.#exited;
    clearTimeout(late);
  }

  /** Ends it and all that it started with SIGKILL. */
  async kill(): Promise<void> {
    if (!this.running) return;
    await this.signal('SIGKILL');
    await this.#exited;
  }

  /** Sends a signal to it and to all that it started. */
  signal(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.pid !== undefined) process.kill(-this.#child.pid, signal);
    return Promise.resolve();
  }

  /**
   * Waits until `ready` resolves to true.
   * @throws {ProcessError} with its output, when it ends before or takes longer than `timeoutMs`; the signal's
   * reason, when it is aborted. The program has ended then.
   */
  async waitUntil(
    ready: () => Promise<boolean>,
    name: string,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (!(await ready())) {
      if (signal.aborted) await this.kill();
      signal.throwIfAborted();
      const state = this.running
        ? Date.now() > deadline
          ? 'did not get ready in time'
          : undefined
        : 'ended early';
      if (state !== undefined) {
        await this.kill();
        const output = readFileSync(this.options.logFile, 'utf8');
        throw new ProcessError(
          `${name} ${state}; its log is ${this.options.logFile} and ends:\n${lastLines(output)}`,
          output,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** Those that say something to people: no stack frames. */
function lastLines(output: string): string {
  const lines = output
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^\s*(at |\.\.\. \d+ more)/.test(line));
  return lines.slice(-LAST_LINES).join('\n');
}
