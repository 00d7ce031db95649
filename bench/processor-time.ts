import { readdir, readFile } from 'node:fs/promises';

/**
 * The processor time used so far by the live threads of a process, in milliseconds. Read from the scheduler
 * (`/proc/PID/task/TID/schedstat`), with nanosecond resolution; Linux only.
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
