let missed = 0;

/** Prints a figure beside its goal. @param isMet by default, whether it is at most the goal. */
export function report(point: string, measured: number, goal: number, isMet = measured <= goal): void {
  if (!isMet) missed++;
  console.log(
    `${point.padEnd(74)} ${measured.toFixed(2).padStart(8)}  goal ${goal}${isMet ? '' : '  MISSED'}`,
  );
}

/** Lets the process end with 1 if a goal was missed. */
export function exitByGoals(): void {
  if (missed > 0) process.exitCode = 1;
}

/** Runs a request and returns how long it took, in milliseconds. */
export async function timed(request: Promise<unknown>): Promise<number> {
  const began = performance.now();
  await request;
  return performance.now() - began;
}
