import { get } from 'node:http';
import { readConfig } from '../config.js';

/**
 * `node dist/cli/health-check.js`: the health check of the image. Exits with 0 if the server of this environment responds,
 * otherwise with 1.
 */
const { host, port } = readConfig(process.env);

// Not `fetch`, which refuses some ports, such as 6000.
get({ host, port, path: '/ping' }, (response) => {
  response.resume();
  process.exitCode = response.statusCode === 200 ? 0 : 1;
}).on('error', ({ message }) => {
  console.error(message);
  process.exitCode = 1;
});
