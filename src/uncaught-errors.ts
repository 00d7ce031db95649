import { createRedactor } from './redact.js';

/** How many causes of an error are shown: more are circular, as a rule. */
const MAX_CAUSES = 5;

/**
 * An unexpected error, for standard error: its stack and those of its causes, without secrets. What Node prints
 * of it by itself has all of its fields.
 */
export function describeCrash(error: unknown, secrets: readonly string[]): string {
  const redact = createRedactor(secrets);
  if (!(error instanceof Error)) return `a ${typeof error} was thrown`;
  const stacks: string[] = [];
  for (let at: unknown = error; at instanceof Error && stacks.length <= MAX_CAUSES; at = at.cause) {
    stacks.push(redact(at.stack ?? at.message));
  }
  return stacks.join('\ncaused by: ');
}

/** Ends the process with code 1 when an error is thrown that nothing catches, as Node does, but without secrets. */
export function endOnCrash(secrets: readonly string[]): void {
  process.on('uncaughtException', (error) => {
    console.error(describeCrash(error, secrets));
    process.exit(1);
  });
}
