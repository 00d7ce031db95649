/**
 * Measures the longest time for which an asynchronous operation blocks the event loop.
 *
 * Other processes and garbage from other tests can only lengthen a block. So each block counts as the shorter
 * of its elapsed time (which includes other processes) and its CPU time (which includes garbage collection on
 * other threads), and each step of the operation counts as the shortest of several runs.
 * @param run does the same in each run, and calls `nextStep` before each of its steps.
 * @param runs the maximum; stops early once the result is at most `enoughMs`.
 * @returns milliseconds.
 */
export async function longestBlock(
  run: (nextStep: () => void) => Promise<unknown>,
  runs = 5,
  enoughMs = 0,
): Promise<number> {
  const shortest: number[] = [];
  let result = Infinity;
  for (let i = 0; i < runs && result > enoughMs; i++) {
    const longest = await longestBlockPerStep(run);
    longest.forEach((ms, step) => (shortest[step] = Math.min(shortest[step] ?? Infinity, ms)));
    result = Math.max(...shortest);
  }
  return result;
}

async function longestBlockPerStep(run: (nextStep: () => void) => Promise<unknown>): Promise<number[]> {
  const longest: number[] = [];
  let step = 0;
  let last = now();
  let immediate: NodeJS.Immediate;
  const measure = () => {
    const current = now();
    const ms = Math.min(current.elapsedMs - last.elapsedMs, current.cpuMs - last.cpuMs);
    longest[step] = Math.max(longest[step] ?? 0, ms);
    last = current;
  };
  const turn = () => {
    measure();
    immediate = setImmediate(turn);
  };
  immediate = setImmediate(turn);
  await run(() => {
    measure();
    step++;
  });
  measure();
  clearImmediate(immediate);
  return longest;
}

function now(): { elapsedMs: number; cpuMs: number } {
  const { user, system } = process.cpuUsage();
  return { elapsedMs: performance.now(), cpuMs: (user + system) / 1000 };
}
