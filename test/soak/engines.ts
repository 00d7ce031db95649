import { join } from 'node:path';
import { Client } from '@elastic/elasticsearch';
import { Redis } from 'ioredis';
import { findPaths } from '../../dev/paths.js';
import { startRedisProcess } from '../../dev/redis.js';
import { startCluster } from '../support/cluster.js';
import { EngineLink } from '../support/engine-link.js';

/**
 * Niceness of a node while it starts. Elsewhere it has its own processors; here its start would take both, for half a minute,
 * from all others. Afterwards it has the same priority as they have.
 */
const START_NICENESS = 15;

/** Three Elasticsearch nodes and one Redis, each with a link for the replicas. */
export type Engines = Awaited<ReturnType<typeof startEngines>>;

/** @param folder receives the log of Redis. */
export async function startEngines(folder: string) {
  const redisServer = await startRedisProcess({
    paths: findPaths(process.env),
    folder: join(folder, 'redis'),
    env: process.env,
    log: (line) => console.log(line),
    signal: new AbortController().signal,
  });
  const cluster = await startCluster(
    ['master', 'master', 'master'],
    process.getuid?.() === 0 ? { startNiceness: START_NICENESS } : {},
  );
  const nodes = cluster.nodes.map(({ url }) => url);
  const elasticsearchLinks = await Promise.all(nodes.map((node) => EngineLink.start(node)));
  const redisLink = await EngineLink.start(redisServer.url);
  // The soak's own connections do not use the links.
  const elasticsearch = new Client({ nodes, requestTimeout: 10_000, maxRetries: 3 });
  const redis = new Redis(redisServer.url);
  // Faults kill Redis; the connection is made again.
  redis.on('error', () => undefined);
  const stop = async () => {
    await Promise.all([...elasticsearchLinks, redisLink].map((link) => link.stop()));
    await elasticsearch.close();
    redis.disconnect();
    await redisServer.stop();
    await cluster.stop();
  };
  return { cluster, redisServer, elasticsearchLinks, redisLink, elasticsearch, redis, stop };
}
