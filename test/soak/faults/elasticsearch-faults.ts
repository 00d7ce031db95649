import { setTimeout as pause } from 'node:timers/promises';
import type { ClusterNode } from '../../support/cluster.js';
import { waitFor } from '../../support/wait-for.js';
import type { Stack } from '../stack.js';
import { cutConnections, fault, type Fault } from './fault.js';

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

/** Blocks writes to the index of a rebuild during the load, which must fail. */
function blockedLoad(name: string, rows: string[], block: string): Fault {
  const settings = { [`index.blocks.${block}`]: true };
  return fault(name, rows, (stack) =>
    stack.loadFails(
      (index) => stack.engines.elasticsearch.indices.putSettings({ index, settings }),
      /cluster_block_exception|rejected/,
    ),
  );
}

/** Starts a rebuild, disturbs the engine while it loads, and asserts that it succeeds. */
function duringLoad(name: string, rows: string[], disturb: (stack: Stack) => Promise<void>): Fault {
  return fault(name, rows, async (stack) => {
    const { served } = await stack.beginLoad();
    await disturb(stack);
    await stack.rebuilt(served);
  });
}

const RETURNS = 'the killed node returns';
const IN_LOAD = 'one of several is paused or restarted in a load';

export const elasticsearchFaults: Fault[] = [
  fault('a node paused', [], (stack) => pauseNode(stack.anyNode())),
  duringLoad('a node paused during a load', [IN_LOAD], (stack) => pauseNode(stack.anyNode())),
  duringLoad(
    'a node restarted during a load',
    [IN_LOAD, 'killed and restarted during the merge'],
    async (stack) => {
      const node = stack.anyNode();
      await node.kill();
      await node.restart();
    },
  ),
  fault(
    'the primary killed',
    ['of three nodes, the one with the primary is killed', RETURNS],
    async (stack) => loseNode(stack, stack.node((await holders(stack))[0])),
  ),
  fault('the elected master killed', ['the elected master is killed', RETURNS], async (stack) => {
    const [master] = await stack.engines.elasticsearch.cat.master({ format: 'json' });
    await loseNode(stack, stack.node(master?.node ?? ''));
  }),
  blockedLoad('writes blocked', ['a document is refused, or writes are blocked'], 'write'),
  blockedLoad('disk full', ['disk full'], 'read_only_allow_delete'),
  fault('latency of Elasticsearch', [], (stack) => stack.withLatency(100, () => stack.rebuild())),
  fault('connections to a node cut', [], (stack) =>
    cutConnections(stack, stack.engines.elasticsearchLinks, 12, 300),
  ),
  duringLoad('connections cut in a load', [], (stack) =>
    cutConnections(stack, stack.engines.elasticsearchLinks, 5, 100),
  ),
];
