import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';
import { startElasticsearch } from '../../src/local/elasticsearch.js';
import type { Engine } from '../../src/local/engine.js';
import { findPlaces, makeFolder } from '../../src/local/places.js';

const HEAP = '512m';

/** A node of a cluster. */
export interface ClusterNode extends Engine {
  /** As Elasticsearch's settings want it. */
  name: string;
}

/** Two real Elasticsearch nodes of this machine, of which the second holds data alone: the cluster goes on without it. */
export interface Cluster {
  first: ClusterNode;
  second: ClusterNode;
  stop(): Promise<void>;
}

/** @throws where it cannot be had: its nodes come from Maven, also where the other engines are containers. */
export async function startCluster(): Promise<Cluster> {
  const places = findPlaces(process.env);
  const folder = makeFolder(await mkdtemp(join(tmpdir(), 'package-registry-search-test-')), places.runAs);
  const clusterName = `test-${randomBytes(4).toString('hex')}`;
  const masterPort = await getPort();
  const nodes: ClusterNode[] = [];
  const start = async (name: string, settings: Record<string, unknown>): Promise<ClusterNode> => {
    const engine = await startElasticsearch({
      places,
      folder: join(folder, name),
      heap: HEAP,
      env: process.env,
      say: (line) => console.log(line),
      signal: new AbortController().signal,
      settings: {
        'cluster.name': clusterName,
        'node.name': name,
        'discovery.type': 'multi-node',
        'discovery.seed_hosts': [`127.0.0.1:${masterPort}`],
        ...settings,
      },
    });
    const node = { ...engine, name };
    nodes.push(node);
    return node;
  };
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const first = await start('first', {
      'transport.port': masterPort,
      'cluster.initial_master_nodes': ['first'],
    });
    const second = await start('second', { 'transport.port': await getPort(), 'node.roles': ['data'] });
    return { first, second, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
