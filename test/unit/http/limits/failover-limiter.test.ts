import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { FailoverLimiter, RETRY_PAUSE_MS } from '../../../../src/http/limits/failover-limiter.js';
import { REDIS_TIMEOUT_MS } from '../../../../src/http/limits/redis-windows.js';
import { createLogger } from '../../../../src/util/log.js';

/** Of the script, for one client. */
type Reply = [fitting: number, before: number, msLeft: number];

/** By how much timers of Node may be early, in milliseconds. */
const EARLY_TIMER_MS = 20;

const LIMIT = 5;
const PASSED: Reply = [1, 0, 60_000];

// With a real Redis: test/integration/limits.test.ts, test/integration/serial/rate-limits.test.ts, test/faults/redis-outages.test.ts.
describe('FailoverLimiter', () => {
  let respond: () => Promise<Reply>;
  /** Clients whose checks were sent to Redis, and commands. */
  let sent: number;
  let commands: number;
  let clients = 0;
  let warnings: string[];
  let limiter: FailoverLimiter;

  beforeEach(() => {
    respond = () => Promise.resolve(PASSED);
    sent = 0;
    commands = 0;
    warnings = [];
    const evaluate = async (_script: string, clients: number) => {
      commands++;
      sent += clients;
      const reply = await respond();
      return Array.from({ length: clients }, () => reply).flat();
    };
    const redis = { eval: evaluate } as unknown as Redis;
    const write = (line: string) => warnings.push((JSON.parse(line) as { msg: string }).msg);
    const log = createLogger('warn', { destination: { write } });
    const policy = { name: 'test', points: LIMIT, windowSeconds: 60 };
    limiter = new FailoverLimiter(policy, { redis, slug: 'test', log, stats: new Map() });
  });

  /** Takes one point for each of several new clients at the same time. @returns how many checks Redis got of them. */
  async function sentOf(checks: number): Promise<number> {
    const before = sent;
    clients += checks;
    await Promise.all(Array.from({ length: checks }, (_, i) => limiter.take(`client ${clients + i}`, 1)));
    return sent - before;
  }

  it('rejects a client without points without asking Redis, until its window ends', async () => {
    respond = () => Promise.resolve([1, LIMIT - 1, 80]);
    expect(await limiter.take('a', 1)).to.include({ allowed: true, used: LIMIT });
    expect(await limiter.take('a', 1)).to.include({ allowed: false, used: LIMIT });
    expect(sent).to.equal(1);
    await pause(100);
    await limiter.take('a', 1);
    expect(sent).to.equal(2);
  });

  it('asks again for a client whose last request cost more than it has left', async () => {
    respond = () => Promise.resolve([0, LIMIT - 1, 60_000]);
    expect(await limiter.take('a', 2)).to.include({ allowed: false, used: LIMIT - 1 });
    respond = () => Promise.resolve([1, LIMIT - 1, 60_000]);
    expect(await limiter.take('a', 1)).to.include({ allowed: true, used: LIMIT });
  });

  it('sends all checks of one iteration of the event loop in one command', async () => {
    expect(await sentOf(20)).to.equal(20);
    expect(commands).to.equal(1);
  });

  it('gives each of equal checks of one client its own state', async () => {
    respond = () => Promise.resolve([2, LIMIT - 2, 60_000]);
    const states = await Promise.all([1, 2, 3].map(() => limiter.take('a', 1)));
    expect(states.map(({ allowed, used }) => [allowed, used])).to.deep.equal([
      [true, LIMIT - 1],
      [true, LIMIT],
      [false, LIMIT],
    ]);
    expect(sent).to.equal(1);
  });

  it('waits once a second for a hanging Redis, and counts all other checks locally at once', async () => {
    expect(REDIS_TIMEOUT_MS).to.equal(50);
    expect(RETRY_PAUSE_MS).to.equal(1000);
    respond = () => new Promise(() => undefined);
    const began = performance.now();
    expect(await sentOf(3), 'until the first timeout').to.equal(3);
    expect(performance.now() - began).to.be.within(45, 150);
    expect(await sentOf(20)).to.equal(0);
    expect(performance.now() - began, 'without a wait').to.be.lessThan(160);
    await pause(RETRY_PAUSE_MS + EARLY_TIMER_MS);
    const waiting = limiter.take('a', 1);
    expect(await sentOf(20), 'beside the one that waits').to.equal(0);
    await waiting;
    expect(await sentOf(20)).to.equal(0);
    expect(sent).to.equal(4);
    expect(limiter.stats.fallbacks).to.equal(64);
    expect(warnings).to.deep.equal(['Redis does not respond: counting locally']);

    await pause(RETRY_PAUSE_MS + EARLY_TIMER_MS);
    respond = () => Promise.resolve(PASSED);
    await limiter.take('a', 1);
    expect(await sentOf(20), 'all of them again').to.equal(20);
  });

  it('asks a Redis that fails at once each time, and logs that once until it succeeds', async () => {
    for (let outage = 1; outage <= 2; outage++) {
      respond = () => Promise.reject(new Error('no connection'));
      for (let i = 0; i < 3; i++) expect(await sentOf(1)).to.equal(1);
      expect(warnings).to.have.length(outage);
      respond = () => Promise.resolve(PASSED);
      expect(await sentOf(1)).to.equal(1);
    }
    expect(limiter.stats.fallbacks).to.equal(6);
  });

  it('applies the limit by itself while Redis fails', async () => {
    respond = () => Promise.reject(new Error('no connection'));
    const states = [];
    for (let i = 0; i < LIMIT + 1; i++) states.push(await limiter.take('a', 1));
    expect(states.map(({ allowed }) => allowed)).to.deep.equal([true, true, true, true, true, false]);
    expect(states.at(-1)?.msLeft).to.be.within(59_000, 60_000);
  });
});
