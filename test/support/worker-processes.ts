import { readdirSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';

/** The processes that rebuild for a server. @param parent process id of the server; this process by default. */
export function workersOf(parent: number | undefined = process.pid): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isWorkerOf(name, parent))
    .map(Number);
}

function isWorkerOf(pid: string, parent: number): boolean {
  try {
    const [, ppid] = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return (
      Number(ppid) === parent && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('rebuild/worker.cjs')
    );
  } catch {
    return false; // It has ended in the meantime.
  }
}

/** Whether a process still runs. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** What a worker keeps, or has left, in the folder of temporary files. Other runs of the tests may use it, too. */
export async function temporaryFilesOf(worker: number): Promise<string[]> {
  return (await readdir(tmpdir())).filter((name) =>
    name.startsWith(`package-registry-search-snapshot-${worker}-`),
  );
}
