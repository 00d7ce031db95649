import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { processorTime } from './processor-time.js';

const SAMPLE_MS = 250;

/** A server in a child process, which prints its address as `"url"` in a line of JSON. */
export class ServerProcess {
  url = '';
  /** The largest resident memory seen, in megabytes. */
  peakMegabytes = 0;
  /** The same including its child processes, such as the worker of a rebuild. */
  peakMegabytesWithChildren = 0;
  /** The same of its child processes alone. */
  peakMegabytesOfChildren = 0;
  /** Address of its metrics, if they are enabled. */
  metricsUrl: string | undefined;
  readonly #child: ChildProcess;
  readonly #sampler: NodeJS.Timeout;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#sampler = setInterval(() => void this.#sample(), SAMPLE_MS);
  }

  /** @param script relative to the project. @param input its standard input. */
  static async start(script: string, env: Record<string, string>, input = ''): Promise<ServerProcess> {
    const root = fileURLToPath(new URL('..', import.meta.url));
    const args = script.endsWith('.ts') ? ['--import', 'tsx', script] : [script];
    const { PATH, HOME } = process.env;
    const child = spawn(process.execPath, args, {
      cwd: root,
      env: { PATH, HOME, NODE_ENV: 'production', ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    child.stdin.end(input);
    const server = new ServerProcess(child);
    for await (const line of createInterface({ input: child.stdout })) {
      const { url, metricsUrl, level, msg } = JSON.parse(line) as {
        url?: string;
        metricsUrl?: string;
        level?: number;
        msg?: string;
      };
      if (level !== undefined && level >= 50) throw new Error(`${script}: ${msg}`);
      if (url !== undefined) {
        server.url = url;
        server.metricsUrl = metricsUrl;
        break;
      }
    }
    child.stdout.resume();
    if (server.url === '') throw new Error(`${script} exited without printing an address`);
    return server;
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** The resident memory now, in megabytes. */
  async megabytes(): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  }

  /** The processor time used so far, in seconds. */
  async cpuSeconds(): Promise<number> {
    return (await processorTime(this.pid)) / 1000;
  }

  async stop(): Promise<void> {
    clearInterval(this.#sampler);
    if (this.#child.exitCode !== null) return;
    this.#child.kill('SIGTERM');
    await once(this.#child, 'exit');
  }

  async #sample(): Promise<void> {
    const args = ['-o', 'pid=,rss=', '-p', String(this.pid), '--ppid', String(this.pid)];
    const { stdout } = await promisify(execFile)('ps', args).catch(() => ({ stdout: '' }));
    const processes = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
    let own = 0;
    let children = 0;
    for (const [pid, kilobytes = 0] of processes) {
      if (pid === this.pid) own = kilobytes / 1024;
      else children += kilobytes / 1024;
    }
    this.peakMegabytes = Math.max(this.peakMegabytes, own);
    this.peakMegabytesOfChildren = Math.max(this.peakMegabytesOfChildren, children);
    this.peakMegabytesWithChildren = Math.max(this.peakMegabytesWithChildren, own + children);
  }
}
