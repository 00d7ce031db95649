import { readdirSync, readFileSync } from 'node:fs';

/** The processes of rebuilds that a server has started. @param parent process id of the server; this process by default. */
export function rebuildsOf(parent: number | undefined = process.pid): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isRebuildOf(name, parent))
    .map(Number);
}

function isRebuildOf(pid: string, parent: number): boolean {
  try {
    const [, ppid] = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return (
      Number(ppid) === parent && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('cli/rebuild.cjs')
    );
  } catch {
    return false; // It has exited in the meantime.
  }
}

/** Whether a process is running. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
