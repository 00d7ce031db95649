import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Calls `use` with the addresses of servers with these listeners, which stand for nodes of Elasticsearch: they send its
 * header. Undefined stands for an unreachable one, a text for the address of something else. Stops them afterwards.
 */
export async function withNodes<T>(
  nodes: readonly (RequestListener | string | undefined)[],
  use: (urls: string[]) => Promise<T>,
): Promise<T> {
  const servers = nodes.map((node) =>
    createServer((request, response) => {
      response.setHeader('X-Elastic-Product', 'Elasticsearch');
      if (typeof node === 'function') node(request, response);
    }).listen(0, '127.0.0.1'),
  );
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const urls = servers.map((server, i) => {
    const node = nodes[i] ?? 'http://127.0.0.1:1';
    return typeof node === 'string' ? node : `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  try {
    return await use(urls);
  } finally {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  }
}
