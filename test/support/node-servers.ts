import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Calls `use` with the addresses of servers with these listeners, which stand for nodes of Elasticsearch; undefined stands
 * for an unreachable one. Stops them afterwards.
 */
export async function withNodes<T>(
  listeners: readonly (RequestListener | undefined)[],
  use: (urls: string[]) => Promise<T>,
): Promise<T> {
  const servers = listeners.map((listener) => createServer(listener).listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server, i) =>
    listeners[i] === undefined ? 1 : (server.address() as AddressInfo).port,
  );
  try {
    return await use(ports.map((port) => `http://127.0.0.1:${port}`));
  } finally {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  }
}
