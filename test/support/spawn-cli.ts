import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { searchForSecrets } from './secret-scanner.js';
import { waitFor } from './wait-for.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The exit code, or the signal that has killed the process. */
export type Exit = number | NodeJS.Signals;

/** Wraps a command before it is run. */
export type Wrap = (command: readonly string[]) => string[];

/** Runs a command, which is `"$@"`, in a script of the shell. */
export function inShell(script: string): Wrap {
  return (command) => ['sh', '-c', script, 'sh', ...command];
}

/** Runs a command on a pseudo-terminal. Its standard error is part of its output. */
export const onTerminal: Wrap = (command) => {
  const quoted = command.map((word) => `'${word}'`).join(' ');
  return ['script', '--quiet', '--return', '--command', `echo "pid $$"; exec ${quoted}`, '/dev/null'];
};

/** One of the project's commands, built by `npm run build` and run in a child process. */
export class SpawnedCli {
  stdout = '';
  stderr = '';
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown[]>;

  /**
   * @param name of its file in `dist`, such as `cli/rebuild`, or a path of TypeScript that is not built.
   * @param env the whole environment except PATH and HOME.
   */
  constructor(
    name: string,
    env: Record<string, string>,
    args: string[] = [],
    wrap: Wrap = (command) => [...command],
  ) {
    const { PATH, HOME } = process.env;
    const [file = '', ...rest] = wrap([process.execPath, ...programOf(name), ...args]);
    this.#child = spawn(file, rest, {
      cwd: ROOT,
      env: { PATH, HOME, ...env },
      stdio: [wrap === onTerminal ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    });
    // The program may have ended when something is typed.
    this.#child.stdin?.on('error', () => undefined);
    this.#child.stdout?.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.#child.once('close', () => {
      for (const line of `${this.stdout}\n${this.stderr}`.split('\n')) searchForSecrets('logLines', line);
    });
    this.#exited = once(this.#child, 'close');
  }

  /** Its process id. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Waits for a text on standard output and returns the match. */
  async prints(pattern: RegExp, timeoutMs: number): Promise<RegExpExecArray> {
    const ended = () => this.#child.exitCode !== null;
    await waitFor(
      () => pattern.test(this.stdout) || ended(),
      `${String(pattern)} in\n${this.stdout}`,
      timeoutMs,
    );
    const match = pattern.exec(this.stdout);
    if (match === null) throw new Error(`exited without ${String(pattern)}:\n${this.stdout}${this.stderr}`);
    return match;
  }

  /** Waits until the server listens. @returns its address. */
  async url(): Promise<string> {
    const [, url = ''] = await this.prints(/"url":"([^"]+)"/, 30_000);
    return url;
  }

  /** Waits until it exits. */
  async exit(): Promise<Exit> {
    const [code, signal] = (await this.#exited) as [number | null, NodeJS.Signals];
    return code ?? signal;
  }

  /** Sends a signal to the program itself, also on a terminal. */
  signal(signal: NodeJS.Signals): void {
    const [, pid] = /^pid (\d+)/.exec(this.stdout) ?? [];
    if (pid === undefined) this.#child.kill(signal);
    else process.kill(Number(pid), signal);
  }

  /** Types on its terminal. */
  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Ends the reader of its standard output. */
  closeOutput(): void {
    this.#child.stdout?.destroy();
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
    this.signal(signal);
    return this.exit();
  }
}

function programOf(name: string): string[] {
  return name.endsWith('.ts') ? ['--import', 'tsx', name] : [`dist/${name}.js`];
}

/** A command that has ended. */
export interface EndedCommand {
  code: Exit;
  stdout: string;
  stderr: string;
}

/** Runs a command to its end. */
export async function runCommand(
  ...command: ConstructorParameters<typeof SpawnedCli>
): Promise<EndedCommand> {
  const program = new SpawnedCli(...command);
  const code = await program.exit();
  const { stdout, stderr } = program;
  return { code, stdout, stderr };
}
