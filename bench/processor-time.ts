import { readdir, readFile } from 'node:fs/promises';

/**
 * The user time of a process so far, in milliseconds: the program's own work. System time also depends on how the machine
 * wakes up the client. Counted in ticks of 10 ms; Linux only.
 */
export async function userTime(pid: number): Promise<number> {
  const [, fields = ''] = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ');
  return 10 * Number(fields.split(' ')[11]);
}

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
