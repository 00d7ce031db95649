import { readFileSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ManagedProcess } from '../../dev/managed-process.js';
import { startProgram, statusOf } from '../support/program.js';
import { waitFor } from '../support/wait-for.js';
import { rebuildsOf } from '../support/rebuild-processes.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const READY_TIMEOUT_MS = 60_000;
const EXIT_TIMEOUT_MS = 30_000;

/** One replica of the service, as a process with a fixed port. It ends with this process. */
export class Replica {
  #program: ManagedProcess | undefined;
  #starts = 0;

  /**
   * @param folder of its log and its temporary files.
   * @param env the whole environment except PATH.
   * @param root the folder of the service; by default this clone.
   */
  constructor(
    readonly name: string,
    readonly port: number,
    readonly folder: string,
    private readonly env: Readonly<Record<string, string>>,
    private readonly root = ROOT,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get temporaryFolder(): string {
    return join(this.folder, 'tmp');
  }

  /** Process id of the server. @throws {Error} if it is not running. */
  get pid(): number {
    const group = this.#program?.group;
    // The supervisor's watcher has the command line of the supervisor, which also contains this one.
    const children = readFileSync(`/proc/${group}/task/${group}/children`, 'utf8').trim().split(' ');
    const server = children.find((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(process.execPath),
    );
    if (server === undefined) throw new Error(`${this.name} is not running`);
    return Number(server);
  }

  /** Process ids of its running rebuilds. */
  get workers(): number[] {
    try {
      return rebuildsOf(this.pid);
    } catch {
      return []; // It is not running.
    }
  }

  /** Starts it, again if it is running, and waits until it serves. @param changes of its environment. */
  async start(changes: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.#program?.kill();
    await mkdir(this.temporaryFolder, { recursive: true });
    this.#program = await startProgram([process.execPath, 'dist/main.js'], {
      name: this.name,
      cwd: this.root,
      env: {
        TMPDIR: this.temporaryFolder,
        PORT: String(this.port),
        NODE_ENV: 'production',
        ...this.env,
        ...changes,
      },
      logFile: join(this.folder, `${this.name}-${++this.#starts}.log`),
      timeoutMs: READY_TIMEOUT_MS,
      isReady: () => this.isHealthy(),
    });
  }

  async isHealthy(): Promise<boolean> {
    return (await statusOf(`${this.url}/health`)) === 200;
  }

  /** Stops it with SIGTERM, if it is running. @throws {Error} if it does not exit by itself. */
  async stop(): Promise<void> {
    if (this.#program?.running === true) await this.#end('SIGTERM');
  }

  /** Kills the server and its rebuild, like a failing machine. */
  async kill(): Promise<void> {
    for (const worker of this.workers) process.kill(worker, 'SIGKILL');
    await this.#program?.kill();
  }

  /** Kills only the server. */
  killServer(): Promise<void> {
    return this.#end('SIGKILL');
  }

  /** Suspends or resumes the server and its rebuild. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    for (const pid of [this.pid, ...this.workers]) process.kill(pid, signal);
  }

  /** Resident memory of the server in megabytes. */
  async memory(): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    process.kill(this.pid, signal);
    await waitFor(() => this.#program?.running !== true, `${this.name} to exit`, EXIT_TIMEOUT_MS);
  }
}
