import { rejects } from 'node:assert/strict';
import { checkRedis } from '../../dev/check-redis.js';
import { Redis } from 'ioredis';
import { expect } from 'chai';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { bundledPackages } from '../support/datasets.js';
import { useOwnEngine } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { scrape } from '../support/metrics.js';
import { REBUILD, startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('With a Redis that fails,', function () {
  this.timeout(120_000);
  const engine = useOwnEngine('redis');

  describe('a service', () => {
    const suite = useService(
      () => bundledPackages().slice(0, 1000),
      () => ({ REDIS_URL: engine().url, ...UNCACHED }),
    );
    const reading = useBackgroundReader(suite, [1000]);

    /** Calls `act` while Redis is down. */
    async function withoutRedis(act: () => Promise<unknown>): Promise<void> {
      await engine().kill();
      await act().finally(() => engine().restart());
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

    it('does not keep a service from rebuilding', async () => {
      await withoutRedis(async () => {
        expect((await suite.service.rebuild()).status).to.equal(202);
        expect(suite.service.failure()).to.equal(undefined);
      });
    });

    /** States in which Redis cannot be used, as operators cause them, and the code of its error. */
    type Act = (redis: Redis) => Promise<unknown>;
    const unusable: [reason: string, begin: Act, end: Act][] = [
      ['READONLY', (redis) => redis.replicaof('127.0.0.1', 1), (redis) => redis.replicaof('NO', 'ONE')],
      ['OOM', (redis) => redis.config('SET', 'maxmemory', 1), (redis) => redis.config('SET', 'maxmemory', 0)],
      [
        'NOAUTH',
        async (redis) => {
          await redis.config('SET', 'requirepass', 'secret-for-tests');
          await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        },
        (redis) => redis.config('SET', 'requirepass', ''),
      ],
      [
        'NOPERM',
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
          await rejects(checkRedis(engine().url, suite.service.slug), {
            message: new RegExp(`^Redis responds: ${reason} `),
          });
        } finally {
          await end(administrator);
        }
        await waitFor(async () => (await isConnected()) === 1, 'a usable Redis');
        await expectCountsInRedis(replica, administrator);
        administrator.disconnect();
        await replica.stop();
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

    reading.itNoticesNothing();
  });
});
