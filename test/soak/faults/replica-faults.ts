import { setTimeout as pause } from 'node:timers/promises';
import { integer } from '../../fixtures/random.js';
import { waitFor } from '../../support/wait-for.js';
import { isRunning } from '../../support/rebuild-processes.js';
import type { Replica } from '../replica.js';
import type { Stack } from '../stack.js';
import { ANY_REASON, fault, type Fault } from './fault.js';
import { withoutRedis } from './redis-faults.js';

/** How long a rebuild process may take to notice the end of its server and to clean up, in milliseconds. */
const CLEAN_UP_TIMEOUT_MS = 20_000;

/** Rebuilds of this dataset take about this long on an idle machine, in milliseconds. */
const REBUILD_MS = 2500;

/** Longer than a lock lasts without renewal, in milliseconds. */
const LOCK_EXPIRY_MS = 11_000;

/** Longer than the server takes to kill a rebuild process that does not respond (30 s), in milliseconds. */
const KILL_TIMEOUT_MS = 45_000;

const FLIP_TIMEOUT_MS = 60_000;

/** A random moment of a rebuild. */
function someMoment({ random }: Stack): Promise<void> {
  return pause(integer(random, 0, REBUILD_MS));
}

/** Waits until another snapshot is served. */
async function flipped(stack: Stack, before: string | undefined): Promise<void> {
  await waitFor(async () => (await stack.servedIndex()) !== before, 'the flip', FLIP_TIMEOUT_MS);
}

/** Starts a rebuild and waits until its process runs. @returns the id of the process. */
async function beginRebuild(stack: Stack, replica: Replica): Promise<number> {
  await stack.beginRebuild(replica);
  await waitFor(() => replica.workers.length > 0, 'the rebuild process');
  return replica.workers[0] as number;
}

function signal(pid: number, name: NodeJS.Signals): void {
  // It may have ended by itself.
  if (isRunning(pid)) process.kill(pid, name);
}

async function exited(worker: number, timeoutMs = CLEAN_UP_TIMEOUT_MS): Promise<void> {
  await waitFor(() => !isRunning(worker), 'the rebuild process to exit', timeoutMs);
}

/** Starts a rebuild and lets `end` end its process at a random moment. The next rebuild must work. */
function endedRebuild(name: string, rows: string[], end: (stack: Stack, worker: number) => unknown): Fault {
  return fault(name, rows, async (stack) => {
    const worker = await beginRebuild(stack, stack.anyReplica());
    await someMoment(stack);
    await end(stack, worker);
    await exited(worker);
    await stack.rebuild();
  });
}

/**
 * Starts a rebuild, lets `end` end its replica at a moment of it, and starts the replica again. The next rebuild must
 * work.
 */
function endedReplica(
  name: string,
  rows: string[],
  end: (stack: Stack, replica: Replica, worker: number) => Promise<void>,
  moment: (stack: Stack, served: string | undefined) => Promise<void> = someMoment,
): Fault {
  return fault(name, rows, async (stack) => {
    const replica = stack.anyReplica();
    const served = await stack.servedIndex();
    const worker = await beginRebuild(stack, replica);
    try {
      await moment(stack, served);
      await end(stack, replica, worker);
    } finally {
      await replica.start();
    }
    await exited(worker);
    await stack.rebuild();
  });
}

/** Suspends a rebuild until another one has run on another replica. The next one must work. */
function suspended(
  suspend: (stack: Stack, replica: Replica, worker: number, served: string | undefined) => Promise<void>,
  resume: (replica: Replica, worker: number) => void,
): Fault['inject'] {
  return async (stack) => {
    const [replica, other] = stack.twoReplicas();
    const served = await stack.servedIndex();
    const worker = await beginRebuild(stack, replica);
    try {
      await suspend(stack, replica, worker, served);
      await stack.beginRebuild(other);
      await waitFor(() => other.workers.length === 0, 'the other rebuild', 60_000);
    } finally {
      resume(replica, worker);
    }
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

const replicaFaults: Fault[] = [
  endedReplica('a replica killed', ['both are killed before the flip ¹'], (_stack, replica) =>
    replica.kill(),
  ),
  endedReplica(
    'a replica killed after the flip',
    ['both are killed right after the flip'],
    (_stack, replica) => replica.kill(),
    flipped,
  ),
  endedReplica('a server killed', ['the server is killed ⁴'], async (_stack, replica, worker) => {
    await replica.killServer();
    await exited(worker);
  }),
  endedReplica(
    'a rebuild stalls at a stop',
    ['it does not respond when the server stops'],
    async (_stack, replica, worker) => {
      signal(worker, 'SIGSTOP');
      await replica.stop();
    },
  ),
  fault(
    'a rolling restart',
    ['SIGTERM with requests in flight', 'replicas behind the proxy restart one by one'],
    (stack) => rollingRestart(stack),
  ),
  fault('a changed configuration', [], async (stack) => {
    try {
      await rollingRestart(stack, {
        CACHE_MAX_BYTES: '0',
        INDEX_REPLICAS: '0-all',
        LOG_LEVEL: 'debug',
        CHANGES_RETENTION: '5',
      });
      await stack.rebuild();
    } finally {
      await rollingRestart(stack);
    }
  }),
  endedReplica(
    'SIGTERM during a rebuild',
    ['SIGTERM during the load or the merge'],
    async (stack, replica) => {
      await replica.stop();
      if ((await stack.engines.redis.exists(stack.lockKey)) !== 0) throw new Error('the lock is still held');
    },
  ),
  endedReplica(
    'SIGTERM, a node paused',
    ['SIGTERM while Elasticsearch is paused'],
    async (stack, replica) => {
      const node = stack.anyNode();
      await node.pause();
      await replica.stop().finally(() => node.resume());
    },
  ),
];

export const processFaults: Fault[] = [
  ...replicaFaults.map((one): Fault => ({ ...one, endsReplica: true })),
  endedRebuild('a rebuild killed', ['the rebuild process is killed ³'], (_stack, worker) =>
    signal(worker, 'SIGKILL'),
  ),
  endedRebuild('a rebuild killed without Redis', ['the same without Redis'], (stack, worker) =>
    withoutRedis(stack, () => {
      signal(worker, 'SIGKILL');
      return pause(1000);
    }),
  ),
  {
    ...endedRebuild('a rebuild stalls', ['it does not respond for 30 seconds'], (_stack, worker) => {
      signal(worker, 'SIGSTOP');
      return exited(worker, KILL_TIMEOUT_MS);
    }),
    isSlow: true,
  },
  endedRebuild('the lock lost', ['the lock is lost during the merge'], ({ engines, lockKey }) =>
    engines.redis.del(lockKey),
  ),
  fault(
    'a replica suspended while another rebuilds',
    ['a replica is suspended while another rebuilds'],
    suspended(
      (_stack, replica) => {
        replica.signal('SIGSTOP');
        return pause(LOCK_EXPIRY_MS);
      },
      (replica) => replica.signal('SIGCONT'),
    ),
  ),
  fault(
    'a rebuild suspended after the flip',
    ['a rebuild is suspended between flip and prune'],
    suspended(
      async (stack, _replica, worker, served) => {
        await flipped(stack, served);
        signal(worker, 'SIGSTOP');
      },
      (_replica, worker) => signal(worker, 'SIGCONT'),
    ),
  ),
  fault('the index removed during the load', ['a load continues after its index was removed'], (stack) =>
    stack.loadFails((index) => stack.engines.elasticsearch.indices.delete({ index }), ANY_REASON),
  ),
  fault('twenty rebuilds at once', ['twenty `/rebuild` at once on three replicas'], async (stack) => {
    const statuses = await Promise.all(
      Array.from({ length: 20 }, (_, i) => stack.askRebuild(stack.replicas[i % 3] as Replica)),
    );
    const sorted = statuses.sort().join();
    if (sorted !== [202, ...Array<number>(19).fill(503)].join()) throw new Error(`statuses ${sorted}`);
    await stack.idle();
  }),
  fault('indices of killed rebuilds', ['indices of killed rebuilds, and similar names'], async (stack) => {
    const { indices } = stack.engines.elasticsearch;
    const orphan = `${stack.alias}-20200101t000000z-00000000`;
    const similar = `${stack.alias}-20200101t000000z-0000000x`;
    for (const index of [orphan, similar]) {
      await indices.create({ index, settings: { number_of_replicas: 0 } });
    }
    const left = await stack
      .rebuild()
      .then(() => stack.indices())
      .finally(() => indices.delete({ index: similar }));
    if (left.includes(orphan) || !left.includes(similar)) throw new Error(`left: ${left.join()}`);
  }),
];
