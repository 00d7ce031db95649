import { once } from 'node:events';
import { ConfigError, readConfig } from './config/config.js';
import { secretsIn } from './config/secrets.js';
import { createLogger, terminalOutput } from './util/log.js';
import { startServer } from './server.js';
import { describeCrash, endOnCrash } from './util/process-end.js';

/**
 * Runs the service until a signal, and sets the exit code.
 * @param env the environment variables of the configuration. Their secrets are redacted in the log and in errors.
 * @param stopping aborts on the first stop signal, also while the service starts.
 */
export async function runServer(env: NodeJS.ProcessEnv, stopping: AbortSignal): Promise<void> {
  const secrets = secretsIn(env);
  endOnCrash(secrets);
  try {
    const config = readConfig(env);
    const log = createLogger(config.logLevel, { secrets, destination: await terminalOutput() });
    log.info('starting');
    const server = await startServer(config, { log, env });
    if (!stopping.aborted) await once(stopping, 'abort');
    log.info('stopping');
    if (await server.stop()) {
      log.info('stopped');
      return;
    }
    log.error('stopped before cleanup was complete: the next rebuild deletes what is left');
    process.exit(1);
  } catch (error) {
    const { syscall, message } = error as NodeJS.ErrnoException;
    if (error instanceof ConfigError) console.error(message);
    else if (syscall === 'listen' || syscall === 'getaddrinfo') {
      console.error(`the service cannot listen, check PORT, METRICS_PORT and HOST: ${message}`);
    } else console.error(describeCrash(error, secrets));
    process.exitCode = 1;
  }
}
