import { setTimeout as pause } from 'node:timers/promises';
import { pick } from '../../fixtures/random.js';
import type { ClusterNode } from '../../support/cluster.js';
import { waitFor } from '../../support/wait-for.js';
import type { Stack } from '../stack.js';
import { cutConnections, fault, type Fault } from './fault.js';

/** How long a proxy responds in place of a node, in milliseconds. */
const IMPOSTOR_MS = 10_000;
/** What a proxy sends if its engine is gone. */
const PAGE = 'HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>';
/** Longer than any search timeout, in milliseconds. */
const PAUSE_MS = 5000;

const PROMOTION_TIMEOUT_MS = 60_000;

/** The nodes with a copy of the served index, the one with the primary first. */
async function holders({ engines, alias: index }: Stack): Promise<string[]> {
  const shards = await engines.elasticsearch.cat.shards({
    index,
    format: 'json',
    h: ['node'],
    s: ['prirep'],
  });
  return shards.flatMap(({ node }) => node ?? []);
}

/** Kills a node, rebuilds on the other two, and starts it again. */
async function loseNode(stack: Stack, node: ClusterNode): Promise<void> {
  await node.kill();
  try {
    const isReplaced = async () => !(await holders(stack).catch(() => [node.name])).includes(node.name);
    await waitFor(isReplaced, 'another primary', PROMOTION_TIMEOUT_MS);
    await stack.rebuild();
  } finally {
    await node.restart();
  }
}

async function pauseNode(node: ClusterNode): Promise<void> {
  await node.pause();
  await pause(PAUSE_MS).finally(() => node.resume());
}

/** Starts a rebuild, disturbs the engine while it loads, and asserts that it succeeds. */
function duringLoad(name: string, disturb: (stack: Stack) => Promise<void>): Fault {
  return fault(name, async (stack) => {
    const served = await stack.beginLoad();
    await disturb(stack);
    await stack.rebuilt(served);
  });
}

export const elasticsearchFaults: Fault[] = [
  fault('a node paused', (stack) => pauseNode(stack.anyNode())),
  duringLoad('a node paused during a load', (stack) => pauseNode(stack.anyNode())),
  duringLoad('a node restarted during a load', async (stack) => {
    const node = stack.anyNode();
    await node.kill();
    await node.restart();
  }),
  fault('the primary killed', async (stack) => loseNode(stack, stack.node((await holders(stack))[0]))),
  fault('the elected master killed', async (stack) => {
    const [master] = await stack.engines.elasticsearch.cat.master({ format: 'json' });
    await loseNode(stack, stack.node(master?.node ?? ''));
  }),
  fault('latency of Elasticsearch', (stack) => stack.withLatency(100, () => stack.rebuild())),
  fault('connections to a node cut', (stack) =>
    cutConnections(stack, stack.engines.elasticsearchLinks, 12, 300),
  ),
  duringLoad('connections cut in a load', (stack) =>
    cutConnections(stack, stack.engines.elasticsearchLinks, 5, 100),
  ),
  fault('a proxy that responds for a node', async (stack) => {
    const link = pick(stack.random, stack.engines.elasticsearchLinks);
    link.impostor = PAGE;
    link.cut();
    await pause(IMPOSTOR_MS);
    link.impostor = undefined;
    link.cut();
  }),
];
