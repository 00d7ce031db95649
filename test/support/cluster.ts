import { randomBytes } from 'node:crypto';
import { freePort } from '../../dev/free-port.js';
import type { Service } from '../../dev/service.js';
import { isolatedNodes, type NodeOptions } from './isolated-nodes.js';

/** A node of a cluster. */
export interface ClusterNode extends Service {
  /** Its `node.name`. */
  name: string;
}

/** Elasticsearch nodes on this machine that form one cluster. */
export interface Cluster {
  nodes: ClusterNode[];
  /** All nodes, in the format of ELASTICSEARCH_URL. */
  url: string;
  stop(): Promise<void>;
}

/**
 * Starts a cluster.
 * @param members role of each node: master and data, or data only. The first must be a master.
 * @throws if Elasticsearch is not available.
 */
export async function startCluster(
  members: ('master' | 'data')[],
  options: Pick<NodeOptions, 'administrator' | 'startNiceness'> = {},
): Promise<Cluster> {
  const own = await isolatedNodes();
  const name = `test-${randomBytes(4).toString('hex')}`;
  const ports = await Promise.all(members.map(() => freePort()));
  const nodes: ClusterNode[] = [];
  try {
    // One after the other: the first node forms the cluster, which the others join.
    for (const [i, role] of members.entries()) {
      const node = `node-${i + 1}`;
      const engine = await own.start(node, {
        settings: {
          'cluster.name': name,
          'node.name': node,
          'transport.port': ports[i],
          'discovery.type': 'multi-node',
          'discovery.seed_hosts': ports.map((port) => `127.0.0.1:${port}`),
          ...(role === 'data' ? { 'node.roles': ['data'] } : {}),
          ...(i === 0 ? { 'cluster.initial_master_nodes': [node] } : {}),
        },
        ...options,
      });
      nodes.push({ ...engine, name: node });
    }
    return { nodes, url: nodes.map(({ url }) => url).join(','), stop: () => own.stop() };
  } catch (error) {
    await own.stop();
    throw error;
  }
}
