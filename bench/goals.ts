let missed = 0;

/** Prints a figure with its goal. @param isMet defaults to `measured <= goal`. */
export function report(point: string, measured: number, goal: number, isMet = measured <= goal): void {
  if (!isMet) missed++;
  console.log(
    `${point.padEnd(74)} ${measured.toFixed(2).padStart(8)}  goal ${goal}${isMet ? '' : '  MISSED'}`,
  );
}

/** Sets the exit code to 1 if a goal was missed. */
export function exitByGoals(): void {
  if (missed > 0) process.exitCode = 1;
}

/** Returns how long a request takes, in milliseconds. */
export async function timed(request: Promise<unknown>): Promise<number> {
  const began = performance.now();
  await request;
  return performance.now() - began;
}
