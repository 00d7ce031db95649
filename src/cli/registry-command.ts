import { ConfigError, DEFAULT_SLUG, readConfig } from '../config/config.js';
import { checkElasticsearch } from '../elasticsearch/connection-check.js';
import { StateUnavailableError } from '../rebuild/state.js';
import { createRebuildContext, type RebuildContext } from '../rebuild/rebuild-context.js';
import { createLogger, terminalOutput } from '../util/log.js';
import { abortOnStopSignal } from '../util/process-end.js';
import { exitWith, type Exit } from './command.js';

/**
 * The error if `REGISTRY_SLUG` is not set and the default registry has no snapshot. `REGISTRY_SLUG` is then probably
 * set only for the server, and a rebuild would create a second registry.
 */
const NO_SLUG = `REGISTRY_SLUG must be set to that of the server, since the registry "${DEFAULT_SLUG}" has no snapshot yet`;

/**
 * Runs a command with the server's configuration and the API key of rebuilds, and sets the exit code. Does not acquire
 * the rebuild lock: `command` must do so.
 * @param command gets a signal that aborts on SIGINT, SIGTERM and, if there is a terminal, SIGHUP.
 */
export function runRegistryCommand(
  env: NodeJS.ProcessEnv,
  command: (context: RebuildContext, signal: AbortSignal) => Promise<Exit>,
): Promise<void> {
  return exitWith(env, async () => {
    const config = readConfig(env);
    // `exitWith` prints failures in one line, so by default the log does not repeat them.
    const level = config.logLevel === 'info' ? 'fatal' : config.logLevel;
    const log = createLogger(level, { secrets: config.secrets, destination: await terminalOutput() });
    await checkElasticsearch(config.elasticsearch);
    const context = createRebuildContext(config, log);
    const { snapshots } = context;
    const signal = abortOnStopSignal();
    try {
      await snapshots.refresh();
      if (snapshots.state === 'unreachable') throw new Error(snapshots.stateReason);
      if (snapshots.state === 'absent' && env['REGISTRY_SLUG'] === undefined) throw new ConfigError(NO_SLUG);
      return await command(context, signal);
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      throw new Error(`the rebuild lock cannot be acquired: ${error.message}`, { cause: error });
    } finally {
      await context.close();
    }
  });
}
