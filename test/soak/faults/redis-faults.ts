import { setTimeout as pause } from 'node:timers/promises';
import { RATE_LIMIT, type Stack } from '../stack.js';
import { flood } from './client-faults.js';
import { cutConnections, fault, type Fault } from './fault.js';

/** Longer than the lock lasts without renewal, in milliseconds. */
const LOCK_EXPIRY_MS = 12_000;

/** More than the 50 ms that a request waits for Redis, in milliseconds. */
const SLOW_MS = 120;

/** Room for the lock and the progress, but not for the clients below. */
const SMALL_MEMORY = '12mb';
const CLIENTS = 90_000;

/**
 * Clients that arrive at a time during the rebuild, and the pause between, in milliseconds: the lock, which is renewed
 * every 2.5 s, must be younger than most of the clients that fit into the memory.
 */
const ARRIVING = 1000;
const ARRIVAL_MS = 400;

/** Adds clients to Redis, as the rate limiter does. @param first number of the first one. */
async function addClients({ engines, slug }: Stack, first: number): Promise<void> {
  const pipeline = engines.redis.pipeline();
  for (let i = first; i < first + ARRIVING; i++) {
    pipeline.set(`${slug}:limit:reading:2001:db8:${i.toString(16)}::/64`, 1, 'EX', 60);
  }
  await pipeline.exec();
}

/** Kills Redis, and starts it again without data after `work`. */
export async function withoutRedis({ engines }: Stack, work: () => Promise<unknown>): Promise<void> {
  await engines.redisServer.kill();
  await work().finally(() => engines.redisServer.restart());
}

export const redisFaults: Fault[] = [
  fault('Redis killed', ['killed under the server'], (stack) => withoutRedis(stack, () => pause(4000))),
  fault('Redis slow', ['slow'], async ({ engines: { redisLink } }) => {
    redisLink.delayMs = SLOW_MS;
    await pause(5000);
    redisLink.delayMs = 0;
  }),
  fault('connections to Redis cut', [], (stack) => cutConnections(stack, [stack.engines.redisLink], 8, 400)),
  fault('Redis killed during a flood', ['killed and restarted during a flood'], async (stack) => {
    const [passed] = await Promise.all([flood(stack), withoutRedis(stack, () => pause(500))]);
    // Each replica counts by itself, and the shared count starts again.
    const most = RATE_LIMIT * (stack.replicas.length + 1);
    if (passed > most) throw new Error(`${passed} requests passed, at most ${most} may`);
  }),
  fault('Redis down at a rebuild', ['down when `/rebuild` is called'], (stack) =>
    withoutRedis(stack, async () => {
      const status = await stack.askRebuild(stack.anyReplica());
      if (status !== 503) throw new Error(`/rebuild returned ${status} without Redis`);
    }),
  ),
  fault('Redis killed in a load', ['killed during a load, restarted without the lock'], async (stack) => {
    await stack.beginLoad();
    await withoutRedis(stack, () => Promise.resolve());
    await stack.rebuild();
  }),
  fault('Redis down for long', ['down for longer than the lock lasts (10 s)'], async (stack) => {
    await stack.beginRebuild(stack.anyReplica());
    await withoutRedis(stack, () => pause(LOCK_EXPIRY_MS));
    await stack.rebuild();
  }),
  fault('Redis out of memory', ['more clients than its memory holds, in a rebuild'], async (stack) => {
    const { redis } = stack.engines;
    // As in docker-compose.yml.
    await redis.config('SET', 'maxmemory-policy', 'volatile-lru');
    await redis.config('SET', 'maxmemory', SMALL_MEMORY);
    try {
      let clients = 0;
      for (; clients < CLIENTS; clients += ARRIVING) await addClients(stack, clients);
      const before = await stack.servedIndex();
      await stack.beginRebuild(stack.anyReplica());
      for (; (await redis.exists(stack.lockKey)) === 1; clients += ARRIVING) {
        await addClients(stack, clients);
        await pause(ARRIVAL_MS);
      }
      await stack.rebuilt(before);
    } finally {
      await redis.config('SET', 'maxmemory', '0');
    }
  }),
  {
    name: 'a database that does not exist',
    rows: ['the database in `REDIS_URL` does not exist'],
    endsReplica: true,
    inject: async (stack) => {
      const replica = stack.anyReplica();
      await replica.stop();
      try {
        await replica.start({ REDIS_URL: `${stack.engines.redisLink.url}/99` });
        await pause(3000);
      } finally {
        await replica.stop();
        await replica.start();
      }
    },
  },
];
