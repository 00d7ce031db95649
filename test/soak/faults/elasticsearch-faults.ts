import { setTimeout as pause } from 'node:timers/promises';
import { pick } from '../../../fixtures/random.js';
import type { ClusterNode } from '../../support/cluster.js';
import { waitFor } from '../../support/wait-for.js';
import type { Stack } from '../stack.js';
import { SLOW_LOAD_MS, type Fault } from './fault.js';

/** Longer than any search timeout, in milliseconds. */
const PAUSE_MS = 5000;

const PROMOTION_TIMEOUT_MS = 60_000;

/** The nodes with a copy of the served index, the one with the primary first. */
async function holders(stack: Stack): Promise<string[]> {
  const shards = await stack.elasticsearch.cat.shards({
    index: stack.alias,
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

/** Disturbs the index of a rebuild during the load, which must fail. */
function disturbedLoad(settings: object, reason: RegExp): Fault['inject'] {
  return (stack) =>
    stack.withLatency(SLOW_LOAD_MS, async () => {
      const [known, before] = [await stack.indices(), await stack.servedIndex()];
      await stack.beginRebuild(stack.anyReplica());
      await stack.onNewIndex(known, (index) => stack.elasticsearch.indices.putSettings({ index, settings }));
      await stack.idle();
      await stack.expectFailed(before, reason);
      const left = await stack.indices();
      if (left.join() !== known.join()) throw new Error(`left behind: ${left.join()}`);
    });
}

/** Starts a rebuild, disturbs a node while it loads, and asserts that it succeeds. */
function duringLoad(disturb: (node: ClusterNode) => Promise<void>): Fault['inject'] {
  return async (stack) => {
    const [known, before] = [await stack.indices(), await stack.servedIndex()];
    await stack.beginRebuild(stack.anyReplica());
    await stack.newIndex(known);
    await disturb(stack.anyNode());
    await stack.idle();
    if ((await stack.servedIndex()) === before) throw new Error(await stack.lastFailure());
  };
}

export const elasticsearchFaults: Fault[] = [
  {
    name: 'a node paused',
    rows: [],
    inject: (stack) => pauseNode(stack.anyNode()),
  },
  {
    name: 'a node paused during a load',
    rows: ['one of several is paused or restarted in a load'],
    inject: duringLoad(pauseNode),
  },
  {
    name: 'a node restarted during a load',
    rows: ['one of several is paused or restarted in a load', 'killed and restarted during the merge'],
    inject: duringLoad(async (node) => {
      await node.kill();
      await node.restart();
    }),
  },
  {
    name: 'the node with the primary killed',
    rows: ['of three nodes, the one with the primary is killed', 'the killed node returns'],
    inject: async (stack) => {
      const [primary = ''] = await holders(stack);
      await loseNode(stack, stack.node(primary));
    },
  },
  {
    name: 'the elected master killed',
    rows: ['the elected master is killed', 'the killed node returns'],
    inject: async (stack) => {
      const [master] = await stack.elasticsearch.cat.master({ format: 'json' });
      await loseNode(stack, stack.node(master?.node ?? ''));
    },
  },
  {
    name: 'writes blocked',
    rows: ['a document is refused, or writes are blocked'],
    inject: disturbedLoad({ 'index.blocks.write': true }, /cluster_block_exception|rejected/),
  },
  {
    name: 'disk full',
    rows: ['disk full'],
    inject: disturbedLoad(
      { 'index.blocks.read_only_allow_delete': true },
      /cluster_block_exception|rejected/,
    ),
  },
  {
    name: 'latency of Elasticsearch',
    rows: [],
    inject: (stack) => stack.withLatency(100, () => stack.rebuild()),
  },
  {
    name: 'connections to a node cut',
    rows: [],
    inject: async ({ random, elasticsearchLinks }) => {
      for (let i = 0; i < 12; i++) {
        pick(random, elasticsearchLinks).cut();
        await pause(300);
      }
    },
  },
  {
    name: 'connections to Elasticsearch cut in a load',
    rows: [],
    inject: async (stack) => {
      const { random, elasticsearchLinks } = stack;
      const cutting = duringLoad(async () => {
        for (let i = 0; i < 5; i++) {
          pick(random, elasticsearchLinks).cut();
          await pause(100);
        }
      });
      await cutting(stack);
    },
  },
];
