import { secretsIn } from '../config/secrets.js';
import { ConfigError } from '../config/config.js';
import { endOnCrash } from '../util/uncaught-errors.js';
import { createRedactor } from '../util/redact.js';
import { endOnStopSignal, ignoreUserSignals } from '../util/signals.js';

export const EXIT = { done: 0, failed: 1, misused: 2, busy: 3, stopped: 130 } as const;
export type Exit = (typeof EXIT)[keyof typeof EXIT];

/**
 * Reads the arguments of a command.
 * @param parse throws an error that describes invalid arguments.
 * @returns the result of `parse`. For `--help`, `-h` or invalid arguments, prints the usage and returns undefined.
 */
export function readArguments<T>(usage: string, parse: () => T): T | undefined {
  if (process.argv.slice(2).some((word) => word === '--help' || word === '-h')) {
    console.log(usage);
    return undefined;
  }
  try {
    return parse();
  } catch (error) {
    console.error(`${(error as Error).message}\n${usage}`);
    process.exitCode = EXIT.misused;
    return undefined;
  }
}

/**
 * Sets the exit code. Prints a failure in one line, or a `ConfigError` with one line for each variable.
 * @param env the environment, whose secrets are redacted.
 */
export async function exitWith(env: NodeJS.ProcessEnv, command: () => Promise<Exit>): Promise<void> {
  const secrets = secretsIn(env);
  endOnCrash(secrets);
  ignoreUserSignals();
  endOnStopSignal(EXIT.stopped);
  const redact = createRedactor(secrets);
  let isUnwritten = false;
  // The command continues if its output fails: the reader of a pipe may exit (`| head -1`), or the disk may be full.
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE' || isUnwritten) return;
    isUnwritten = true;
    process.exitCode ||= EXIT.failed;
    console.error(`standard output cannot be written: ${message}`);
  });
  try {
    const exit = await command();
    process.exitCode ||= exit;
  } catch (error) {
    process.exitCode = error instanceof ConfigError ? EXIT.misused : EXIT.failed;
    console.error(redact((error as Error).message));
  }
}
