import { createReadClient, createRebuildClient } from '../../src/elasticsearch/elasticsearch.js';
import { createRedis } from '../../src/redis/redis.js';
import { SearchPool } from '../../src/elasticsearch/search-pool.js';
import { createLogger } from '../../src/util/log.js';
import { EXPORT_TIMEOUT_MS } from '../../src/snapshot/name-order.js';
import { EngineLink } from '../support/engine-link.js';
import { engines } from '../support/engines.js';
import { waitFor } from '../support/wait-for.js';

const MINUTE_MS = 60_000;

/** Some connections at a time, all of which become silent. */
const CONNECTIONS = 3;

describe('A connection that silently stops forwarding', function () {
  this.timeout(2 * MINUTE_MS);
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

  /** Asserts it for a client of Elasticsearch. */
  async function expectReplacedBy<T extends { close(): unknown }>(
    what: string,
    create: (nodes: { nodes: string[]; apiKey: undefined }) => T,
    send: (client: T) => Promise<unknown>,
  ): Promise<void> {
    const link = await linkTo(engines().elasticsearch.url);
    const client = create({ nodes: [link.url], apiKey: undefined });
    openings.push(() => client.close());
    await expectReplaced(link, what, () => send(client));
  }

  it('is replaced within a minute by every client of engines', async () => {
    const search = (pool: SearchPool) => pool.search([], [{ size: 0 }], 'test');
    const exporting = { timeoutMs: EXPORT_TIMEOUT_MS };
    const counting = async () => {
      const link = await linkTo(engines().redis.url);
      const client = await createRedis(link.url, createLogger('silent'), '', 2000);
      openings.push(() => client.disconnect());
      await expectReplaced(link, 'Redis', () => client.exists('silent-connections'));
    };
    await Promise.all([
      counting(),
      expectReplacedBy('reads', createReadClient, (client) => client.info()),
      expectReplacedBy('rebuilds', createRebuildClient, (client) => client.info()),
      expectReplacedBy('searches', (nodes) => new SearchPool(nodes), search),
      expectReplacedBy('exports', (nodes) => new SearchPool(nodes, exporting), search),
    ]);
  });
});
