import { setTimeout as pause } from 'node:timers/promises';
import { RATE_LIMIT, type Stack } from '../stack.js';
import { flood } from './client-faults.js';
import { cutConnections, fault, type Fault } from './fault.js';

/** More than the 50 ms that a request waits for Redis, in milliseconds. */
const SLOW_MS = 120;

/** Kills Redis, and starts it again without data after `work`. */
async function withoutRedis({ engines }: Stack, work: () => Promise<unknown>): Promise<void> {
  await engines.redisServer.kill();
  await work().finally(() => engines.redisServer.restart());
}

export const redisFaults: Fault[] = [
  fault('Redis killed', (stack) => withoutRedis(stack, () => pause(4000))),
  fault('Redis slow', async ({ engines: { redisLink } }) => {
    redisLink.delayMs = SLOW_MS;
    await pause(5000);
    redisLink.delayMs = 0;
  }),
  fault('connections to Redis cut', (stack) => cutConnections(stack, [stack.engines.redisLink], 8, 400)),
  fault('Redis killed during a flood', async (stack) => {
    const [passed] = await Promise.all([flood(stack), withoutRedis(stack, () => pause(500))]);
    // Each replica counts by itself, and the shared count starts again.
    const most = RATE_LIMIT * (stack.replicas.length + 1);
    if (passed > most) throw new Error(`${passed} requests passed, at most ${most} may`);
  }),
];
