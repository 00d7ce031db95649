import { setTimeout as pause } from 'node:timers/promises';
import { integer } from '../../fixtures/random.js';
import { waitFor } from '../../support/wait-for.js';
import type { Replica } from '../replica.js';
import type { Stack } from '../stack.js';
import { fault, type Fault } from './fault.js';

/** Rebuilds of this dataset take about this long on an idle machine, in milliseconds. */
const REBUILD_MS = 2500;

/** Longer than a lock lasts without renewal, in milliseconds. */
const LOCK_EXPIRY_MS = 11_000;

/** Starts a rebuild and waits until its process runs. */
async function beginRebuild(stack: Stack, replica: Replica): Promise<void> {
  await stack.beginRebuild(replica);
  await waitFor(() => replica.workers.length > 0, 'the rebuild process');
}

/**
 * Starts a rebuild, lets `end` end its replica at a random moment of it, and starts the replica again. The next rebuild must
 * work.
 */
function endedReplica(name: string, end: (replica: Replica) => Promise<void>): Fault {
  const inject = async (stack: Stack) => {
    const replica = stack.anyReplica();
    await beginRebuild(stack, replica);
    try {
      await pause(integer(stack.random, 0, REBUILD_MS));
      await end(replica);
    } finally {
      await replica.start();
    }
    await stack.rebuild();
  };
  return { name, inject, endsReplica: true };
}

/** Restarts all replicas one by one. @param changes of their environment. */
export async function rollingRestart(stack: Stack, changes: Record<string, string> = {}): Promise<void> {
  for (const replica of stack.replicas) {
    await replica.stop();
    await replica.start(changes);
  }
}

export const replicaFaults: Fault[] = [
  endedReplica('a replica killed', (replica) => replica.kill()),
  endedReplica('a server killed', (replica) => replica.killServer()),
  endedReplica('SIGTERM during a rebuild', (replica) => replica.stop()),
  {
    name: 'a rolling restart',
    endsReplica: true,
    inject: (stack) => rollingRestart(stack),
  },
  fault('a replica suspended while another rebuilds', async (stack) => {
    const [replica, other] = stack.twoReplicas();
    await beginRebuild(stack, replica);
    replica.signal('SIGSTOP');
    try {
      await pause(LOCK_EXPIRY_MS);
      await beginRebuild(stack, other);
      await waitFor(() => other.workers.length === 0, 'the other rebuild', 60_000);
    } finally {
      replica.signal('SIGCONT');
    }
    await stack.rebuild();
  }),
];
