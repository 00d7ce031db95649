/** Runs a task `count` times, four at a time. */
export async function atOnce(count: number, task: () => Promise<unknown>): Promise<void> {
  let begun = 0;
  const worker = async () => {
    while (begun++ < count) await task();
  };
  await Promise.all(Array.from({ length: 4 }, worker));
}
