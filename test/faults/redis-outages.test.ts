import { rejects } from 'node:assert/strict';
import { checkRedis } from '../../dev/check-redis.js';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect } from 'chai';
import { readConfig } from '../../src/config/config.js';
import { createLogger } from '../../src/util/log.js';
import { RebuildLock, type HeldLock } from '../../src/rebuild/process/lock.js';
import type { Failed } from '../../src/rebuild/process/outcome.js';
import { rebuildUnderLock } from '../../src/rebuild/process/locked-rebuild.js';
import { Progress } from '../../src/rebuild/process/progress.js';
import { createRebuildContext } from '../../src/rebuild/rebuild-context.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { datasetServer, heldBack } from '../support/dataset-server.js';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { useOwnEngine } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { scrape } from '../support/metrics.js';
import { keptIndices } from '../support/served-index.js';
import { newSlug, REBUILD, startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** Time to live of the locks of these tests, in milliseconds. */
const LOCK_MS = 1000;

describe('With a Redis that fails,', function () {
  this.timeout(120_000);
  const engine = useOwnEngine('redis');
  const log = createLogger('silent');

  describe('a service', () => {
    const suite = useService(
      () => bundledPackages().slice(0, 1000),
      () => ({ REDIS_URL: engine().url, ...UNCACHED }),
    );
    const reading = useBackgroundReader(suite, [1000, 3]);

    /** Calls `act` while Redis is down. */
    async function withoutRedis(act: () => Promise<unknown>): Promise<void> {
      await engine().kill();
      await act().finally(() => engine().restart());
    }

    /** Asserts that a rebuild is possible soon, and succeeds. */
    async function expectRebuilt(): Promise<void> {
      const [before] = await keptIndices(suite.service);
      await waitFor(async () => (await suite.service.get(REBUILD)).status === 202, 'rebuilds to be possible');
      await suite.service.idle();
      expect((await keptIndices(suite.service))[1], 'the previous snapshot').to.equal(before);
    }

    it('fails no request: every replica counts by itself', async () => {
      const env = { REDIS_URL: engine().url, RATE_LIMIT_POINTS: '3' };
      const replica = await startService(env, suite.service.slug);
      expect((await replica.get('/stats')).status).to.equal(200);
      await withoutRedis(async () => {
        for (let i = 0; i < 3; i++) expect((await replica.get('/stats')).status).to.equal(200);
        expectProblem(await replica.get('/stats'), 429, 'rate_limited');
      });
      await replica.stop();
    });

    it('returns 503 from /rebuild, with the reason, until Redis is back', async () => {
      await withoutRedis(async () => {
        const answer = await suite.service.get(REBUILD);
        expect(expectProblem(answer, 503, 'search_unavailable')).to.contain('Redis');
      });
      await expectRebuilt();
    });

    /** States in which Redis cannot be used, as operators cause them, and what is said of each. */
    type Act = (redis: Redis) => Promise<unknown>;
    const unusable: [reason: string, begin: Act, end: Act][] = [
      [
        'Redis is a read-only replica',
        (redis) => redis.replicaof('127.0.0.1', 1),
        (redis) => redis.replicaof('NO', 'ONE'),
      ],
      [
        'Redis is full, and its maxmemory-policy evicts nothing',
        (redis) => redis.config('SET', 'maxmemory', 1),
        (redis) => redis.config('SET', 'maxmemory', 0),
      ],
      [
        'Redis requires a password in REDIS_URL',
        async (redis) => {
          await redis.config('SET', 'requirepass', 'secret-for-tests');
          await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        },
        (redis) => redis.config('SET', 'requirepass', ''),
      ],
      [
        'Redis does not allow its user the command SET',
        (redis) => redis.call('ACL', 'SETUSER', 'default', '-set'),
        (redis) => redis.call('ACL', 'SETUSER', 'default', '+set'),
      ],
    ];
    for (const [reason, begin, end] of unusable) {
      it(`counts locally until an outage ends: ${reason}`, async () => {
        const limits = { RATE_LIMIT_POINTS: '3', TRUSTED_PROXIES: '127.0.0.1' };
        const env = { REDIS_URL: engine().url, ...limits, METRICS_PORT: '0' };
        const replica = await startService(env, suite.service.slug);
        const isConnected = async () => (await scrape(replica.server.metricsUrl)).sum('redis_connected');
        expect(await isConnected()).to.equal(1);
        const administrator = new Redis(engine().url);
        // A counter that exists can be raised without SET.
        await administrator.flushdb();
        await begin(administrator);
        try {
          await expectCountsLocally(replica, isConnected);
          // At first, a connection that was closed is not made again yet.
          const refused = async () => (await suite.service.get(REBUILD)).body.detail as unknown;
          await waitFor(async () => (await refused()) === `no rebuild can start: ${reason}`, reason);
          await rejects(checkRedis(engine().url, suite.service.slug), { message: reason });
        } finally {
          await end(administrator);
        }
        await waitFor(async () => (await isConnected()) === 1, 'a usable Redis');
        await expectCountsInRedis(replica, administrator);
        administrator.disconnect();
        await replica.stop();
        await expectRebuilt();
      });
    }

    /** Uses up the limits of readers and of wrong secrets. */
    async function expectCountsLocally(replica: Service, isConnected: () => Promise<unknown>): Promise<void> {
      for (let i = 0; i < 3; i++) {
        expect(await isConnected(), 'also on a new connection').to.equal(0);
        expect((await replica.get('/stats')).status).to.equal(200);
      }
      expectProblem(await replica.get('/stats'), 429, 'rate_limited');
      for (let i = 0; i < 10; i++) {
        expectProblem(await replica.get('/rebuild?secret=wrong'), 403, 'forbidden');
      }
      expectProblem(await replica.get(REBUILD), 429, 'rate_limited');
    }

    /** Asserts that the client that has used up its window stays limited, and that others are counted in Redis. */
    async function expectCountsInRedis(replica: Service, redis: Redis): Promise<void> {
      expectProblem(await replica.get(REBUILD), 429, 'rate_limited');
      await redis.flushdb();
      expectProblem(await replica.get('/stats'), 429, 'rate_limited');
      const isShared = async () => {
        await replica.get('/stats', { headers: { 'X-Forwarded-For': '198.51.100.1' } });
        return (await redis.keys(`${replica.slug}:limit:reading:*`)).length === 1;
      };
      await waitFor(isShared, 'a shared limit');
    }

    for (const [what, whileDown] of [
      ['Redis was restarted without it', () => Promise.resolve()],
      [
        'Redis is down for longer than it lasts',
        (held: HeldLock) => waitFor(() => held.lost.aborted, 'the end of the lock', 2 * LOCK_MS),
      ],
    ] as const) {
      it(`stops a rebuild before the flip if ${what}`, async () => {
        const origin = heldBack(() => toCsv(packagesNamed(['gamma', 'delta', 'epsilon'])));
        const server = await datasetServer(origin.listener);
        const { env, slug } = suite.service;
        const config = readConfig({ ...env, REDIS_URL: engine().url, DATASET_URL: server.url });
        const context = await createRebuildContext(config, log, '');
        await waitFor(() => context.redis?.status === 'ready', 'Redis');
        const served = await suite.service.indices();
        const lock = new RebuildLock(context.redis as Redis, slug, log, LOCK_MS);
        const held = (await lock.acquire()) ?? expect.fail('the lock is held');
        const { signal } = new AbortController();
        const options = { force: true, progress: new Progress(new Date()), signal };
        const rebuilt = rebuildUnderLock(held, context, options);
        await withoutRedis(() => whileDown(held));
        expect(((await rebuilt) as Failed).failure.reason).to.contain('the lock was lost');
        origin.release();
        expect(await suite.service.indices()).to.deep.equal(served);
        await expectRebuilt();
        expect(await lock.isHeld(), 'released').to.equal(false);
        await context.close();
        await server.close();
      });
    }

    reading.itNoticesNothing();
  });

  describe('the lock of a rebuild', () => {
    let redis: Redis;
    beforeEach(() => {
      redis = new Redis(engine().url);
    });
    afterEach(() => redis.disconnect());

    it('is not reported lost after its release, even with a renewal in flight', async () => {
      const lock = new RebuildLock(redis, newSlug(), log, LOCK_MS);
      const held = (await lock.acquire()) ?? expect.fail('the lock is held');
      // Redis does not respond for a moment, in which the first renewal is sent.
      await redis.client('PAUSE', LOCK_MS / 2, 'ALL');
      await pause(LOCK_MS / 3);
      await held.release();
      await pause(LOCK_MS + 200);
      expect(held.lost.aborted).to.equal(false);
      expect(await lock.isHeld()).to.equal(false);
    });

    it('is not released by a rebuild that has lost it to another one', async () => {
      const slug = newSlug();
      const lock = new RebuildLock(redis, slug, log);
      const slow = (await lock.acquire()) ?? expect.fail('the lock is held');
      await redis.del(`${slug}:rebuild-v2:lock`);
      const next = (await lock.acquire()) ?? expect.fail('the lock is held');
      await slow.release();
      expect(await lock.isHeldBy(next.owner)).to.equal(true);
      await next.release();
    });

    it('is released after an acquisition that timed out', async () => {
      const slug = newSlug();
      const lock = new RebuildLock(redis, slug, log);
      const impatient = redis.duplicate({ commandTimeout: 100 });
      await impatient.ping();
      await redis.client('PAUSE', 400, 'ALL');
      const late = await new RebuildLock(impatient, slug, log).acquire().catch((error: unknown) => error);
      expect(late).to.have.property('name', 'LockUnavailableError');
      // Redis executes the commands of `impatient`, which have come first, when the pause ends.
      await redis.ping();
      await waitFor(async () => !(await lock.isHeld()), 'the lock to be free', 3000);
      await impatient.ping();
      expect(await lock.isHeld()).to.equal(false);
      impatient.disconnect();
    });
  });
});
