/**
 * Measures how long an asynchronous operation blocks the event loop in one piece, at its longest.
 *
 * Of each piece the shorter one of elapsed time and CPU time counts: the former includes what other processes of a busy
 * machine take, the latter what garbage collection does on other threads.
 * @param run is repeated, and the shortest result counts.
 * @returns milliseconds.
 */
export async function longestBlock(run: () => Promise<unknown>, repetitions = 5): Promise<number> {
  let shortest = Infinity;
  for (let i = 0; i < repetitions; i++) shortest = Math.min(shortest, await longestBlockOnce(run));
  return shortest;
}

async function longestBlockOnce(run: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = now();
  let immediate: NodeJS.Immediate;
  const measure = () => {
    const current = now();
    longest = Math.max(longest, Math.min(current.elapsedMs - last.elapsedMs, current.cpuMs - last.cpuMs));
    last = current;
  };
  const turn = () => {
    measure();
    immediate = setImmediate(turn);
  };
  immediate = setImmediate(turn);
  await run();
  measure();
  clearImmediate(immediate);
  return longest;
}

function now(): { elapsedMs: number; cpuMs: number } {
  const { user, system } = process.cpuUsage();
  return { elapsedMs: performance.now(), cpuMs: (user + system) / 1000 };
}
