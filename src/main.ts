import { ConfigError, readConfig } from './config.js';
import { createLogger } from './log.js';
import { startServer } from './server.js';

/** The server's process: what a container runs. Stops on SIGTERM and SIGINT. */
async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const config = readConfig(env);
  const log = createLogger(config.logLevel, process.stdout.isTTY);
  const starting = startServer(config, log);
  const stop = (signal: NodeJS.Signals) => {
    log.info({ signal }, 'stopping');
    void starting
      .then((server) => server.stop())
      .then(
        () => log.info('stopped'),
        // What kept it from starting is said below.
        () => undefined,
      );
  };
  // Also while it starts: as the first process of a container it is not ended by a signal that it does not handle.
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  await starting;
}

main(process.env).catch((error: unknown) => {
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof ConfigError) console.error(message);
  else if (code === 'EADDRINUSE' || code === 'EACCES' || code === 'EADDRNOTAVAIL') {
    console.error(`the service cannot listen, check PORT, METRICS_PORT and HOST: ${message}`);
  } else console.error(error);
  process.exitCode = 1;
});
