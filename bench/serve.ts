import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type Koa from 'koa';

/** Serves an app on a free port and prints its address as `ServerProcess` expects it. */
export function serve(app: Koa): void {
  const respond = app.callback();
  const server = createServer((request, response) => void respond(request, response));
  server.listen(0, '127.0.0.1', () => {
    console.log(JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
  });
}
