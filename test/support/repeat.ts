/**
 * Repeats a step in parallel loops.
 * @returns a function that ends the loops after their current steps. May be called again.
 */
export function repeat(loops: number, step: () => Promise<unknown>): () => Promise<void> {
  let isStopped = false;
  const loop = async () => {
    while (!isStopped) await step();
  };
  const done = Promise.all(Array.from({ length: loops }, loop));
  return async () => {
    isStopped = true;
    await done;
  };
}
