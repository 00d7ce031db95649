import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { SkippedRows } from '../lists/fetch/dataset-error.js';
import { PROJECT_FOLDER } from '../util/project-folder.js';
import { secretsIn } from '../config/secrets.js';
import { ConfigError } from '../config/config.js';
import { endOnCrash, endOnStopSignal, ignoreUserSignals } from '../util/process-end.js';
import { createRedactor } from '../util/redact.js';

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

/**
 * The absolute path of a file that is given relative to the caller's folder. npm runs commands in the project's folder,
 * and sets `INIT_CWD` to the caller's folder. If an npm script of another package starts the command, `INIT_CWD` is the
 * folder from which that script was called. It is then ignored, and paths are relative to the current folder.
 */
export function pathOf(file: string): string {
  const { INIT_CWD: calledIn = '.', npm_package_json: manifest = 'package.json' } = process.env;
  const own = fileURLToPath(new URL('package.json', PROJECT_FOLDER));
  const isRunByNpm = existsSync(manifest) && realpathSync(manifest) === own;
  return resolve(isRunByNpm ? calledIn : '.', file);
}

export function urlOf(dataset: string): string {
  return /^(file:|[\w+.-]+:\/\/)/i.test(dataset) ? dataset : pathToFileURL(pathOf(dataset)).href;
}

export function printSkipped({ count, first }: SkippedRows): void {
  if (count === 0) return;
  const shown = first.length < count ? `, the first ${first.length} of them` : '';
  const rows = count === 1 ? '1 invalid row was' : `${count} invalid rows were`;
  console.error([`${rows} skipped${shown}:`, ...first].join('\n'));
}
