import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import * as z from 'zod';
import { createReadClient, createRebuildClient } from '../../src/elasticsearch/elasticsearch.js';
import { createRedis } from '../../src/redis/redis.js';
import { SearchPool } from '../../src/elasticsearch/search-pool.js';
import { createLogger } from '../../src/util/log.js';
import { ApiClient } from '../../src/mcp/api-client.js';
import { EXPORT_TIMEOUT_MS } from '../../src/snapshot/name-order.js';
import { EngineLink } from '../support/engine-link.js';
import { engines } from '../support/engines.js';
import { downloadList } from '../support/list-server.js';
import { waitFor } from '../support/wait-for.js';

const MINUTE_MS = 60_000;

/** Some connections at a time, all of which become silent. */
const CONNECTIONS = 3;

describe('A connection that silently stops forwarding', function () {
  this.timeout(2 * MINUTE_MS);
  const { signal } = new AbortController();
  const links: EngineLink[] = [];
  const openings: (() => unknown)[] = [];
  after(async () => {
    for (const close of openings) await close();
    await Promise.all(links.map((link) => link.stop()));
  });

  async function linkTo(target: string): Promise<EngineLink> {
    const link = await EngineLink.start(target);
    links.push(link);
    return link;
  }

  /** Silences open connections of a client, and waits until its requests succeed again. */
  async function expectReplaced(link: EngineLink, what: string, send: () => Promise<unknown>): Promise<void> {
    await Promise.all(Array.from({ length: CONNECTIONS }, send));
    link.silence();
    const succeeds = () =>
      send().then(
        () => true,
        () => false,
      );
    await waitFor(succeeds, `a new connection of ${what}`, MINUTE_MS);
  }

  it('is replaced within a minute by every client of engines', async () => {
    const { elasticsearch, redis } = engines();
    const access = async () => {
      const link = await linkTo(elasticsearch.url);
      return { link, nodes: { nodes: [link.url], apiKey: undefined } };
    };
    const searching = async (what: string, timeouts: { timeoutMs?: number }) => {
      const { link, nodes } = await access();
      const pool = new SearchPool(nodes, timeouts);
      openings.push(() => pool.close());
      await expectReplaced(link, what, () => pool.search([], [{ size: 0 }], 'test'));
    };
    const requesting = async (what: string, create: typeof createReadClient) => {
      const { link, nodes } = await access();
      const client = create(nodes);
      openings.push(() => client.close());
      await expectReplaced(link, what, () => client.info());
    };
    const counting = async () => {
      const link = await linkTo(redis.url);
      const client = await createRedis(link.url, createLogger('silent'), '');
      openings.push(() => client.disconnect());
      await expectReplaced(link, 'Redis', () => client.exists('silent-connections'));
    };
    await Promise.all([
      counting(),
      requesting('reads', createReadClient),
      requesting('rebuilds', createRebuildClient),
      searching('searches', {}),
      searching('exports', { timeoutMs: EXPORT_TIMEOUT_MS }),
    ]);
  });

  it('is replaced within a minute by the MCP server and downloads', async () => {
    const server = createServer((request, response) => {
      const body =
        request.url === '/list.csv' ? 'name,url\na,https://registry.example/a\n' : '{"name":"value"}';
      void text(request).then(() => response.end(body));
    }).listen(0, '127.0.0.1');
    openings.push(() => server.close());
    await once(server, 'listening');
    const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const link = await linkTo(target);
    const api = new ApiClient(new URL(`${link.url}/`));
    const calling = expectReplaced(link, 'MCP', () =>
      api.get('stats', [], z.object({ name: z.string() }), signal),
    );
    const downloading = async () => {
      const held = await linkTo(target);
      const options = { template: undefined, timeoutSeconds: MINUTE_MS / 1000, windowMs: 500 };
      const load = async () =>
        (await downloadList('csv', `${held.url}/list.csv`, options, signal))?.packages.close();
      held.delayMs = 100;
      const loading = load();
      await waitFor(() => held.open > 0, 'the connection');
      held.silence();
      held.delayMs = 0;
      // The origin is asked again, on another connection.
      await loading;
    };
    await Promise.all([calling, downloading()]);
  });
});
