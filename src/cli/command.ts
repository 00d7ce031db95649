import { checkElasticsearch } from '../elasticsearch/connection-check.js';
import { secretsIn } from '../config/secrets.js';
import { ConfigError, DEFAULT_SLUG, readConfig } from '../config/config.js';
import { endOnCrash } from '../util/uncaught-errors.js';
import { createLogger } from '../util/log.js';
import { LockUnavailableError } from '../rebuild/process/lock.js';
import { createRebuildContext, type RebuildContext } from '../rebuild/rebuild-context.js';
import { createRedactor } from '../util/redact.js';
import { abortOnStopSignal, endOnStopSignal, ignoreUserSignals } from '../util/signals.js';

export const EXIT = { done: 0, failed: 1, misused: 2, busy: 3, stopped: 130 } as const;
export type Exit = (typeof EXIT)[keyof typeof EXIT];

/**
 * The error if `REGISTRY_SLUG` is not set and the default registry has no snapshot. `REGISTRY_SLUG` is then probably
 * set only for the server, and a rebuild would create a second registry.
 */
const NO_SLUG = `REGISTRY_SLUG must be set to that of the server, since the registry "${DEFAULT_SLUG}" has no snapshot yet`;

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
 * Runs a command and sets the exit code. Prints a failure in one line. Prints a `ConfigError` with one line for each
 * variable.
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
    const reason = redact((error as Error).message);
    console.error(
      error instanceof LockUnavailableError ? `${reason}: the rebuild lock cannot be acquired` : reason,
    );
  }
}

/**
 * Runs a command with the server's configuration and the API key of rebuilds, and sets the exit code. Does not acquire
 * the rebuild lock: `command` must do so.
 * @param command gets a signal that aborts on SIGINT, SIGTERM and, if there is a terminal, SIGHUP.
 */
export function runCommand(
  env: NodeJS.ProcessEnv,
  command: (context: RebuildContext, signal: AbortSignal) => Promise<Exit>,
): Promise<void> {
  return exitWith(env, async () => {
    const config = readConfig(env);
    const secrets = secretsIn(env);
    // `exitWith` prints failures in one line, so by default the log does not repeat them.
    const level = config.logLevel === 'info' ? 'fatal' : config.logLevel;
    const log = createLogger(level, process.stdout.isTTY, { secrets });
    if (config.redisUrl === undefined) {
      console.error(
        'REDIS_URL is not set: nothing keeps this command from running during a rebuild of a server',
      );
    }
    await checkElasticsearch(config.elasticsearch);
    const context = await createRebuildContext(config, log, 'no lock can be acquired');
    const { snapshots } = context;
    const signal = abortOnStopSignal();
    try {
      await snapshots.refresh();
      if (snapshots.state === 'unreachable') throw new Error(snapshots.stateReason);
      if (snapshots.state === 'absent' && env['REGISTRY_SLUG'] === undefined) throw new ConfigError(NO_SLUG);
      return await command(context, signal);
    } finally {
      await context.close();
    }
  });
}
