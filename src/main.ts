import { secretsIn } from './config-secrets.js';
import { ConfigError, readConfig } from './config.js';
import { describeCrash, endOnCrash } from './uncaught-errors.js';
import { createLogger } from './log.js';
import { startServer } from './server.js';

/** The server's process: what a container runs. Stops on SIGTERM and SIGINT, also on one that comes while it starts. */
async function main(env: NodeJS.ProcessEnv, secrets: readonly string[]): Promise<void> {
  const config = readConfig(env);
  const log = createLogger(config.logLevel, process.stdout.isTTY, { secrets });
  // As the first process of a container it would not be ended by a signal that it does not handle.
  const signal = firstSignal();
  const server = await startServer(config, { log, secrets });
  log.info({ signal: await signal }, 'stopping');
  if (await server.stop()) {
    log.info('stopped');
    return;
  }
  log.error('stopped with something left undone: a rebuild under way leaves its index to the next one');
  process.exit(1);
}

/** A second one ends the process at once. */
function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const take = (signal: NodeJS.Signals) => {
      process.off('SIGTERM', take);
      process.off('SIGINT', take);
      resolve(signal);
    };
    process.on('SIGTERM', take);
    process.on('SIGINT', take);
  });
}

const secrets = secretsIn(process.env);
endOnCrash(secrets);
main(process.env, secrets).catch((error: unknown) => {
  const { syscall, message } = error as NodeJS.ErrnoException;
  if (error instanceof ConfigError) console.error(message);
  else if (syscall === 'listen' || syscall === 'getaddrinfo') {
    console.error(`the service cannot listen, check PORT, METRICS_PORT and HOST: ${message}`);
  } else console.error(describeCrash(error, secrets));
  process.exitCode = 1;
});
