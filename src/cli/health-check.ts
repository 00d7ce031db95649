import { get } from 'node:http';

/**
 * `node dist/cli/health-check.js`: the health check of the image. Exits with 0 if the server of this environment responds,
 * otherwise with 1. It runs every five seconds, and loading `config.ts` would double its processor time: so it repeats the
 * defaults, and that an empty variable counts as unset.
 */
const host = process.env['HOST'] || '127.0.0.1';
const port = process.env['PORT'] || 3000;

// Not `fetch`, which refuses some ports, such as 6000.
get({ host, port, path: '/ping' }, (response) => {
  response.resume();
  process.exitCode = response.statusCode === 200 ? 0 : 1;
}).on('error', ({ message }) => {
  console.error(message);
  process.exitCode = 1;
});
