import { SERVER_TIMEOUTS } from '../../src/http/server/timeouts.js';
import { createLogger } from '../../src/util/log.js';
import { readConfig } from '../../src/config/config.js';
import { startServer } from '../../src/server.js';

// The bundled server has no source maps either. tsx turns them on, and Node then maps the stack of the error of every
// pipelined request that a flood leaves behind: millions, which take minutes.
process.setSourceMapsEnabled(false);

/** A server like that of `src/main.ts`, with shorter timeouts of clients, for tests that wait for them. */
const server = await startServer(readConfig(process.env), {
  env: process.env,
  log: createLogger('info', { secrets: [] }),
  timeouts: { ...SERVER_TIMEOUTS, inactive: 3000, linger: 1000 },
});
process.once('SIGTERM', () => void server.stop().then(() => process.exit()));
