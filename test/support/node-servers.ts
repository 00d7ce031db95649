import { createServer, type RequestListener } from 'node:http';
import { listen } from './listen.js';

/**
 * Calls `use` with the addresses of servers with these listeners, which stand for nodes of Elasticsearch: they send its
 * header. Undefined stands for an unreachable one, a text for the address of something else. Stops them afterwards.
 */
export async function withNodes<T>(
  nodes: readonly (RequestListener | string | undefined)[],
  use: (urls: string[]) => Promise<T>,
): Promise<T> {
  const start = async (node: RequestListener | string = 'http://127.0.0.1:1') => {
    if (typeof node === 'string') return { url: node, close: () => Promise.resolve() };
    const server = createServer((request, response) => {
      response.setHeader('X-Elastic-Product', 'Elasticsearch');
      node(request, response);
    });
    return listen(server);
  };
  const servers = await Promise.all(nodes.map((node) => start(node)));
  try {
    return await use(servers.map(({ url }) => url));
  } finally {
    await Promise.all(servers.map(({ close }) => close()));
  }
}
