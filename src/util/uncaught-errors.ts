import { createRedactor } from './redact.js';

/** Maximum number of causes in the description. Longer chains of causes are usually circular. */
const MAX_CAUSES = 5;

/** The stacks of an error and its causes, without secrets. Node's own output would include all fields of the error. */
export function describeCrash(error: unknown, secrets: readonly string[]): string {
  const redact = createRedactor(secrets);
  if (!(error instanceof Error)) return `a ${typeof error} was thrown`;
  const stacks: string[] = [];
  for (let at: unknown = error; at instanceof Error && stacks.length <= MAX_CAUSES; at = at.cause) {
    stacks.push(redact(at.stack ?? at.message));
  }
  return stacks.join('\ncaused by: ');
}

/** Ends the process with code 1 on an uncaught error, like Node, but prints no secrets. */
export function endOnCrash(secrets: readonly string[]): void {
  process.on('uncaughtException', (error) => {
    console.error(describeCrash(error, secrets));
    process.exit(1);
  });
}
