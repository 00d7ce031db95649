import { readdir, readFile } from 'node:fs/promises';

/**
 * The processor time that a process has used so far, over all of its threads that still run, in milliseconds. From the
 * scheduler, to the nanosecond (`/proc/PID/task/TID/schedstat`); Linux only.
 */
export async function processorTime(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const times = await Promise.all(
    threads.map(async (thread) => {
      const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').catch(() => '0');
      return Number(text.split(' ')[0]) / 1e6;
    }),
  );
  return times.reduce((sum, time) => sum + time, 0);
}
