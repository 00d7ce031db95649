import { setTimeout as pause } from 'node:timers/promises';
import { integer } from '../../../fixtures/random.js';
import { waitFor } from '../../support/wait-for.js';
import { isRunning } from '../../support/worker-processes.js';
import type { Replica } from '../replica.js';
import type { Stack } from '../stack.js';
import { ANY_REASON, SLOW_LOAD_MS, type Fault } from './fault.js';
import { withoutRedis } from './redis-faults.js';

/** How long a rebuild process may take to notice the end of its server and to clean up, in milliseconds. */
const CLEAN_UP_TIMEOUT_MS = 20_000;

/** Rebuilds of this dataset take about this long on an idle machine, in milliseconds. */
const REBUILD_MS = 2500;

/** Longer than a lock lasts without renewal, in milliseconds. */
const LOCK_EXPIRY_MS = 11_000;

/** Longer than the server takes to kill a rebuild process that does not respond (30 s), in milliseconds. */
const KILL_TIMEOUT_MS = 45_000;

/** A random moment of a rebuild. */
function someMoment({ random }: Stack): Promise<void> {
  return pause(integer(random, 0, REBUILD_MS));
}

/** Starts a rebuild and waits until its process runs. @returns the id of the process. */
async function beginRebuild(stack: Stack, replica: Replica): Promise<number> {
  await stack.beginRebuild(replica);
  await waitFor(() => replica.workers.length > 0, 'the rebuild process');
  return replica.workers[0] as number;
}

/** Waits until another snapshot is served. */
async function flipped(stack: Stack, before: string | undefined): Promise<void> {
  await waitFor(async () => (await stack.servedIndex()) !== before, 'the flip', 60_000);
}

function signal(pid: number, name: NodeJS.Signals): void {
  // It may have ended by itself.
  if (isRunning(pid)) process.kill(pid, name);
}

/** Starts a rebuild, lets `end` end the replica, and starts it again. The next rebuild must work. */
function endedReplica(
  end: (stack: Stack, replica: Replica, worker: number) => Promise<void>,
): Fault['inject'] {
  return async (stack) => {
    const replica = stack.anyReplica();
    const worker = await beginRebuild(stack, replica);
    try {
      await end(stack, replica, worker);
    } finally {
      await replica.start();
    }
    await waitFor(() => !isRunning(worker), 'the rebuild process to exit', CLEAN_UP_TIMEOUT_MS);
    await stack.idle();
    await stack.rebuild();
  };
}

/** Restarts all replicas one by one. @param changes of their environment. */
export async function rollingRestart(stack: Stack, changes: Record<string, string> = {}): Promise<void> {
  for (const replica of stack.replicas) {
    await replica.stop();
    await replica.start(changes);
  }
}

export const processFaults: Fault[] = [
  {
    name: 'a replica killed during a rebuild',
    rows: ['both are killed before the flip ¹'],
    endsReplica: true,
    inject: endedReplica(async (stack, replica) => {
      await someMoment(stack);
      await replica.kill();
    }),
  },
  {
    name: 'a replica killed right after the flip',
    rows: ['both are killed right after the flip'],
    endsReplica: true,
    inject: async (stack) => {
      const replica = stack.anyReplica();
      const before = await stack.servedIndex();
      await beginRebuild(stack, replica);
      await flipped(stack, before);
      await replica.kill();
      await replica.start();
      await stack.idle();
      await stack.rebuild();
    },
  },
  {
    name: 'the rebuild process killed',
    rows: ['the rebuild process is killed ³'],
    inject: async (stack) => {
      const worker = await beginRebuild(stack, stack.anyReplica());
      await someMoment(stack);
      signal(worker, 'SIGKILL');
      await stack.idle();
      await stack.rebuild();
    },
  },
  {
    name: 'the rebuild process killed without Redis',
    rows: ['the same without Redis'],
    inject: async (stack) => {
      const worker = await beginRebuild(stack, stack.anyReplica());
      await withoutRedis(stack, () => {
        signal(worker, 'SIGKILL');
        return pause(1000);
      });
      await stack.idle();
      await stack.rebuild();
    },
  },
  {
    name: 'the server killed during its rebuild',
    rows: ['the server is killed ⁴'],
    endsReplica: true,
    inject: endedReplica(async (stack, replica, worker) => {
      await someMoment(stack);
      await replica.killServer();
      await waitFor(() => !isRunning(worker), 'the rebuild process to exit', CLEAN_UP_TIMEOUT_MS);
    }),
  },
  {
    name: 'the rebuild process does not respond',
    rows: ['it does not respond for 30 seconds'],
    isSlow: true,
    inject: async (stack) => {
      const worker = await beginRebuild(stack, stack.anyReplica());
      await someMoment(stack);
      signal(worker, 'SIGSTOP');
      await waitFor(() => !isRunning(worker), 'the rebuild process to be killed', KILL_TIMEOUT_MS);
      await stack.idle();
      await stack.rebuild();
    },
  },
  {
    name: 'the rebuild process does not respond at a stop',
    rows: ['it does not respond when the server stops'],
    endsReplica: true,
    inject: endedReplica(async (stack, replica, worker) => {
      await someMoment(stack);
      signal(worker, 'SIGSTOP');
      await replica.stop();
    }),
  },
  {
    name: 'a rolling restart',
    rows: ['SIGTERM with requests in flight', 'replicas behind the proxy restart one by one'],
    endsReplica: true,
    inject: (stack) => rollingRestart(stack),
  },
  {
    name: 'a changed configuration',
    rows: [],
    endsReplica: true,
    inject: async (stack) => {
      const changes = {
        CACHE_MAX_BYTES: '0',
        INDEX_REPLICAS: '0-all',
        LOG_LEVEL: 'debug',
        CHANGES_RETENTION: '5',
      };
      try {
        await rollingRestart(stack, changes);
        await stack.rebuild();
      } finally {
        await rollingRestart(stack);
      }
    },
  },
  {
    name: 'SIGTERM during a rebuild',
    rows: ['SIGTERM during the load or the merge'],
    endsReplica: true,
    inject: endedReplica(async (stack, replica) => {
      await someMoment(stack);
      await replica.stop();
      if ((await stack.redis.exists(stack.lockKey)) !== 0) throw new Error('the lock is still held');
    }),
  },
  {
    name: 'SIGTERM while a node is paused',
    rows: ['SIGTERM while Elasticsearch is paused'],
    endsReplica: true,
    inject: endedReplica(async (stack, replica) => {
      const node = stack.anyNode();
      await node.pause();
      try {
        await replica.stop();
      } finally {
        await node.resume();
      }
    }),
  },
  {
    name: 'a replica suspended while another rebuilds',
    rows: ['a replica is suspended while another rebuilds'],
    inject: async (stack) => {
      const [suspended, other] = stack.twoReplicas();
      await beginRebuild(stack, suspended);
      suspended.signal('SIGSTOP');
      try {
        await pause(LOCK_EXPIRY_MS);
        await stack.beginRebuild(other);
        await waitFor(() => other.workers.length === 0, 'the other rebuild', 60_000);
      } finally {
        suspended.signal('SIGCONT');
      }
      await stack.idle();
    },
  },
  {
    name: 'a rebuild suspended after the flip',
    rows: ['a rebuild is suspended between flip and prune'],
    inject: async (stack) => {
      const [suspended, other] = stack.twoReplicas();
      const before = await stack.servedIndex();
      const worker = await beginRebuild(stack, suspended);
      await flipped(stack, before);
      signal(worker, 'SIGSTOP');
      try {
        await stack.beginRebuild(other);
        await waitFor(() => other.workers.length === 0, 'the other rebuild', 60_000);
      } finally {
        signal(worker, 'SIGCONT');
      }
      await stack.idle();
      await stack.rebuild();
    },
  },
  {
    name: 'the lock lost',
    rows: ['the lock is lost during the merge'],
    inject: async (stack) => {
      const worker = await beginRebuild(stack, stack.anyReplica());
      await someMoment(stack);
      await stack.redis.del(stack.lockKey);
      await waitFor(() => !isRunning(worker), 'the rebuild to stop', CLEAN_UP_TIMEOUT_MS);
      await stack.rebuild();
    },
  },
  {
    name: 'the index removed during the load',
    rows: ['a load continues after its index was removed'],
    inject: (stack) =>
      stack.withLatency(SLOW_LOAD_MS, async () => {
        const [known, before] = [await stack.indices(), await stack.servedIndex()];
        await stack.beginRebuild(stack.anyReplica());
        await stack.onNewIndex(known, (index) => stack.elasticsearch.indices.delete({ index }));
        await stack.idle();
        await stack.expectFailed(before, ANY_REASON);
      }),
  },
  {
    name: 'twenty rebuilds requested at once',
    rows: ['twenty `/rebuild` at once on three replicas'],
    inject: async (stack) => {
      const statuses = await Promise.all(
        Array.from({ length: 20 }, (_, i) => stack.askRebuild(stack.replicas[i % 3] as Replica)),
      );
      const accepted = statuses.filter((status) => status === 202).length;
      if (accepted !== 1 || statuses.some((status) => status !== 202 && status !== 503)) {
        throw new Error(`statuses ${statuses.join()}`);
      }
      await stack.idle();
    },
  },
  {
    name: 'indices of killed builds',
    rows: ['indices of killed builds, and similar names'],
    inject: async (stack) => {
      const orphan = `${stack.alias}-20200101t000000z-00000000`;
      const similar = `${stack.alias}-20200101t000000z-0000000x`;
      for (const index of [orphan, similar]) {
        await stack.elasticsearch.indices.create({ index, settings: { number_of_replicas: 0 } });
      }
      const left = await stack
        .rebuild()
        .then(() => stack.indices())
        .finally(() => stack.elasticsearch.indices.delete({ index: similar }));
      if (left.includes(orphan) || !left.includes(similar)) throw new Error(`left: ${left.join()}`);
    },
  },
];
