import { secretsIn } from './config/secrets.js';
import { ConfigError, readConfig } from './config/config.js';
import { describeCrash, endOnCrash } from './uncaught-errors.js';
import { createLogger } from './log.js';
import { startServer } from './server.js';
import { ignoreHangup } from './cli/signals.js';

/** The server process. Stops on SIGTERM and SIGINT, also while it starts. */
async function main(env: NodeJS.ProcessEnv, secrets: readonly string[]): Promise<void> {
  const config = readConfig(env);
  let isListening = false;
  const onError = ({ code, message }: NodeJS.ErrnoException) => {
    // From then on, it is better to serve without a log. EAGAIN: the reader of a pipe is slow.
    if (isListening || code === 'EAGAIN') return;
    console.error(`the log cannot be written to standard output: ${message}`);
    process.exit(1);
  };
  const log = createLogger(config.logLevel, process.stdout.isTTY, { secrets, onError });
  log.info('starting');
  ignoreHangup();
  // The first process of a container ignores signals without a handler.
  const signal = firstSignal();
  const server = await startServer(env, { log });
  isListening = true;
  log.info({ signal: await signal }, 'stopping');
  if (await server.stop()) {
    log.info('stopped');
    return;
  }
  log.error('stopped before cleanup was complete: the next rebuild deletes what is left');
  process.exit(1);
}

/** Resolves with the first stop signal. A second one ends the process at once. */
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
