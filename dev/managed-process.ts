import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { SetupError } from './service.js';
import type { Identity } from './paths.js';

/** Time for a program to stop before it is killed, in milliseconds. */
const STOP_MS = 30_000;

/** Number of lines of the program's output in an error message. */
const LAST_LINES = 5;

/**
 * Runs "$@" until it ends or standard input closes. Standard input also closes when the Node process is killed, so no
 * program is left running.
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
  /** File for the program's output. If undefined, the program writes to the output of this process. */
  logFile: string | undefined;
}

/**
 * A program did not become ready. The message gives the reason in a few lines. `output` is the program's whole output,
 * or empty if there is no log file.
 */
export class ProcessError extends SetupError {
  constructor(
    message: string,
    readonly output: string,
  ) {
    super(message);
  }
}

/** A program that ends with this process, but does not receive the terminal's Ctrl-C. */
export class ManagedProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  constructor(
    command: string[],
    private readonly options: ProgramOptions,
  ) {
    const { cwd, env, runAs, logFile } = options;
    const output = logFile === undefined ? 'inherit' : openSync(logFile, 'w');
    this.#child = spawn('/bin/sh', ['-c', SUPERVISOR, 'supervisor', ...command], {
      cwd,
      env,
      ...runAs,
      // Creates a process group. The terminal's Ctrl-C does not reach the group, and one signal reaches all its
      // processes.
      detached: true,
      stdio: ['pipe', output, output],
    });
    if (output !== 'inherit') closeSync(output);
    this.#exited = once(this.#child, 'exit');
    this.#exited.catch(() => undefined);
  }

  /** Id of the process group. It is also the process id of the supervisor, which is the parent of the program. */
  get group(): number | undefined {
    return this.#child.pid;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Stops the program gracefully, and kills it after `STOP_MS`. */
  async stop(): Promise<void> {
    if (!this.running) return;
    this.#child.stdin?.end();
    const late = setTimeout(() => void this.signal('SIGKILL'), STOP_MS);
    await this.#exited;
    clearTimeout(late);
  }

  /** Kills the program and its children. */
  async kill(): Promise<void> {
    if (!this.running) return;
    await this.signal('SIGKILL');
    await this.#exited;
  }

  /** Sends a signal to the program and its children. */
  signal(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.pid !== undefined) process.kill(-this.#child.pid, signal);
    return Promise.resolve();
  }

  /**
   * Sets the niceness of the program and its children, including all threads. Only root may lower a niceness. Linux
   * only.
   */
  setNiceness(niceness: number): void {
    // Twice: a thread that is created during the first call may inherit the old niceness of its creator.
    for (let i = 0; i < 2; i++)
      execFileSync('renice', ['--priority', String(niceness), '--pgrp', String(this.group)]);
  }

  /**
   * Waits until `ready` resolves to true.
   * @throws {ProcessError} with the program's output, if the program ends early or is not ready after `timeoutMs`.
   * @throws the reason of `signal` if it aborts. In both cases, the program has ended.
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
          ? 'did not become ready in time'
          : undefined
        : 'ended early';
      if (state !== undefined) {
        await this.kill();
        const { logFile } = this.options;
        if (logFile === undefined) throw new ProcessError(`${name} ${state}`, '');
        const output = readFileSync(logFile, 'utf8');
        throw new ProcessError(
          `${name} ${state}; the end of its log, ${logFile}:\n${lastLines(output)}`,
          output,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** The last `LAST_LINES` lines, not counting stack frames and empty lines. */
function lastLines(output: string): string {
  const lines = output
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^\s*(at |\.\.\. \d+ more)/.test(line));
  return lines.slice(-LAST_LINES).join('\n');
}
