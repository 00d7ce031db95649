import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { RateLimiterRes } from 'rate-limiter-flexible';
import { RateLimit } from '../../../../src/http/limits/rate-limit.js';
import { createLogger } from '../../../../src/util/log.js';

const LIMIT = 5;

/** The reply of the script: points used, and the milliseconds until the window ends. */
type Reply = [consumed: number, msLeft: number];

function stateOf({ consumedPoints, remainingPoints }: RateLimiterRes): [used: number, left: number] {
  return [consumedPoints, remainingPoints];
}

// With a real Redis: test/integration/limits.test.ts, test/integration/serial/rate-limits.test.ts, test/faults/redis-outages.test.ts.
describe('RateLimit', () => {
  describe('with Redis', () => {
    let respond: () => Promise<Reply>;
    let calls: number;
    let warnings: string[];
    let redis: { status: string; rlflxIncr: () => Promise<Reply>; defineCommand: () => void };
    let limit: RateLimit;

    beforeEach(() => {
      respond = () => Promise.resolve([1, 60_000]);
      calls = 0;
      warnings = [];
      const rlflxIncr = () => {
        calls++;
        return respond();
      };
      redis = { status: 'ready', rlflxIncr, defineCommand: () => undefined };
      const write = (line: string) => warnings.push((JSON.parse(line) as { msg: string }).msg);
      const log = createLogger('warn', { destination: { write } });
      const policy = { name: 'test', points: LIMIT, windowSeconds: 60 };
      limit = new RateLimit(policy, {
        redis: redis as unknown as Redis,
        slug: 'test',
        log,
        stats: new Map(),
      });
    });

    it('rejects a client without points without a Redis call, until its window ends', async () => {
      respond = () => Promise.resolve([LIMIT, 80]);
      expect(stateOf(await limit.consume('a', 1))).to.deep.equal([LIMIT, 0]);
      const { consumedPoints, msBeforeNext } = await limit.consume('a', 0);
      expect(consumedPoints).to.be.greaterThan(LIMIT);
      expect(msBeforeNext).to.be.within(1, 80);
      expect(calls).to.equal(1);
      await limit.consume('b', 1);
      expect(calls, 'another client').to.equal(2);
      await pause(100);
      respond = () => Promise.resolve([1, 60_000]);
      expect(stateOf(await limit.consume('a', 1))).to.deep.equal([1, LIMIT - 1]);
      expect(calls).to.equal(3);
    });

    it('uses up the window of a client whose points do not fit', async () => {
      respond = () => Promise.resolve([LIMIT + 1, 60_000]);
      expect(stateOf(await limit.consume('a', 3))).to.deep.equal([LIMIT + 1, 0]);
      expect(await limit.consume('a', 1)).to.have.property('remainingPoints', 0);
      expect(calls).to.equal(1);
    });

    it('counts in memory from empty windows only while Redis fails', async () => {
      respond = () => Promise.resolve([LIMIT - 1, 60_000]);
      expect(stateOf(await limit.consume('a', 1))).to.deep.equal([LIMIT - 1, 1]);
      respond = () => Promise.reject(new Error('Command timed out'));
      for (let used = 1; used < LIMIT; used++)
        expect(stateOf(await limit.consume('a', 1))).to.deep.equal([used, LIMIT - used]);
      expect(calls).to.equal(LIMIT);
      expect(limit.stats.fallbacks).to.equal(LIMIT - 1);
      respond = () => Promise.resolve([2, 60_000]);
      expect(stateOf(await limit.consume('a', 1))).to.deep.equal([2, LIMIT - 2]);
      expect(limit.stats.fallbacks).to.equal(LIMIT - 1);
    });

    it('applies the whole limit while Redis fails', async () => {
      respond = () => Promise.reject(new Error('Command timed out'));
      const used = [];
      for (let i = 0; i <= LIMIT; i++) used.push((await limit.consume('a', 1)).consumedPoints);
      expect(used).to.deep.equal([1, 2, 3, 4, 5, 6]);
      expect((await limit.consume('a', 1)).msBeforeNext).to.be.within(59_000, 60_000);
      expect(stateOf(await limit.consume('b', 1)), 'another client').to.deep.equal([1, LIMIT - 1]);
    });

    it('sends nothing without a connection', async () => {
      redis.status = 'reconnecting';
      expect(stateOf(await limit.consume('a', 1))).to.deep.equal([1, LIMIT - 1]);
      expect(calls).to.equal(0);
      expect(limit.stats.fallbacks).to.equal(1);
      expect(warnings).to.deep.equal(['Redis does not respond: counting locally']);
    });

    it('logs each reason once, even if some checks succeed', async () => {
      const reply = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' });
      const errors: [Error, reason: string][] = [
        [reply('OOM command not allowed'), 'Redis responds: OOM command not allowed'],
        [
          reply("READONLY You can't write against a read only replica."),
          "Redis responds: READONLY You can't write against a read only replica.",
        ],
        [reply('MOVED 3999 127.0.0.1:6381'), 'Redis responds: MOVED'],
        [reply('MOVED 4999 127.0.0.1:6382'), 'Redis responds: MOVED'],
        [new Error('Command timed out'), 'Redis does not respond'],
      ];
      for (let round = 0; round < 3; round++) {
        for (const [error] of errors) {
          respond = () => Promise.reject(error);
          await limit.consume('a', 0);
          respond = () => Promise.resolve([1, 60_000]);
          await limit.consume('a', 0);
        }
      }
      const reasons = new Set(errors.map(([, reason]) => `${reason}: counting locally`));
      expect(warnings).to.deep.equal([...reasons]);
      expect(limit.stats.fallbacks).to.equal(3 * errors.length);
    });
  });

  describe('without Redis', () => {
    const limitOf = (points: number, windowSeconds: number) => {
      const deps = { redis: undefined, slug: 'test', log: createLogger('silent'), stats: new Map() };
      return new RateLimit({ name: 'test', points, windowSeconds }, deps);
    };
    const consume = async (limit: RateLimit, client: string, ...points: number[]) => {
      const used = [];
      for (const one of points) used.push((await limit.consume(client, one)).consumedPoints);
      return used;
    };

    it('counts requests of each client, also rejected ones', async () => {
      const limit = limitOf(5, 60);
      expect(await consume(limit, 'a', 0, 3, 0, 3, 1)).to.deep.equal([0, 3, 3, 6, 6]);
      expect(await consume(limit, 'b', 5)).to.deep.equal([5]);
      const { msBeforeNext, remainingPoints } = await limit.consume('a', 0);
      expect(msBeforeNext).to.be.within(59_000, 60_000);
      expect(remainingPoints).to.equal(0);
      expect(limit.stats.fallbacks).to.equal(0);
    });

    it('takes bounded memory by forgetting idle clients', async () => {
      const limit = limitOf(5, 60);
      await consume(limit, 'idle', 1);
      for (let i = 0; i < 20_000; i++) {
        if (i % 5000 === 0) await consume(limit, 'active', 1);
        await consume(limit, `client ${i}`, 1);
      }
      expect(await consume(limit, 'idle', 0)).to.deep.equal([0]);
      expect(await consume(limit, 'active', 0)).to.deep.equal([4]);
    });
  });
});
