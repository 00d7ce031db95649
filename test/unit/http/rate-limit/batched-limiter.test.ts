import { expect } from 'chai';
import { FailoverLimiter, type RateLimitState } from '../../../../src/http/rate-limit/failover-limiter.js';
import { BatchedLimiter } from '../../../../src/http/rate-limit/batched-limiter.js';
import { createLogger } from '../../../../src/log.js';

const BUDGET = { name: 'test', points: 5, windowSeconds: 60 };
const STORE = { redis: undefined, slug: 'test', log: createLogger('silent', false), stats: new Map() };

/** A limiter of 5 points whose round trips end when `arrive` is called. */
class SlowLimiter extends FailoverLimiter {
  readonly trips: { key: string; points: number; deadline: number; arrive: (error?: Error) => void }[] = [];

  constructor() {
    super(BUDGET, STORE);
  }

  /** The keys and points of each write. */
  get batches(): [key: string, points: number][][] {
    return this.#ends.map((end, i) => this.seen.slice(this.#ends[i - 1] ?? 0, end));
  }

  readonly #ends: number[] = [];

  override batch(consume: () => void): void {
    super.batch(consume);
    this.#ends.push(this.trips.length);
  }

  override async consume(key: string, points: number, deadline: number): Promise<RateLimitState> {
    await new Promise<void>((resolve, reject) => {
      const arrive = (error?: Error) => (error === undefined ? resolve() : reject(error));
      this.trips.push({ key, points, deadline, arrive });
    });
    return super.consume(key, points);
  }

  async arrive(trip: number, error?: Error): Promise<void> {
    this.trips[trip]?.arrive(error);
    await turn();
  }

  get seen(): [key: string, points: number][] {
    return this.trips.map(({ key, points }) => [key, points]);
  }
}

/** Waits for one turn of the event loop. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe('BatchedLimiter', () => {
  const consumed = async (count: Promise<{ consumed: number }>) => (await count).consumed;

  it('counts the points of each request, in order of arrival', async () => {
    const counts = new BatchedLimiter(new FailoverLimiter(BUDGET, STORE));
    const states = [
      counts.consume('p'),
      counts.consume('p', 3),
      counts.consume('p', 2),
      counts.consume('q', 3),
    ];
    expect(await Promise.all(states.map(consumed))).to.deep.equal([1, 4, 6, 3]);
    expect((await counts.consume('p')).consumed).to.equal(7);
  });

  it('counts sequential requests separately', async () => {
    const counts = new BatchedLimiter(new FailoverLimiter(BUDGET, STORE));
    for (const expected of [1, 2, 3, 4, 5, 6, 7]) {
      const count = await counts.consume('a');
      expect(count.consumed).to.equal(expected);
      expect(count.msBeforeNext).to.be.within(1, 60_000);
    }
  });

  it('combines concurrent requests into one round trip, each with its own count', async () => {
    const limiter = new SlowLimiter();
    const counts = new BatchedLimiter(limiter);
    const together = Promise.all([1, 2].map(() => consumed(counts.consume('a'))));
    await turn();
    expect(limiter.seen).to.deep.equal([['a', 2]]);
    const during = Promise.all([1, 2, 3].map(() => consumed(counts.consume('a'))));
    await turn();
    expect(limiter.seen).to.deep.equal([['a', 2]]);
    await limiter.arrive(0);
    expect(await together).to.deep.equal([1, 2]);
    expect(limiter.seen).to.deep.equal([['a', 2], ['a', 3]]); // prettier-ignore
    await limiter.arrive(1);
    expect(await during).to.deep.equal([3, 4, 5]);
    expect(limiter.seen).to.have.length(2);
  });

  it('returns counts beyond the budget within one round trip, so that exactly the budget passes', async () => {
    const limiter = new SlowLimiter();
    const counts = new BatchedLimiter(limiter);
    const all = Promise.all(Array.from({ length: 9 }, () => consumed(counts.consume('a'))));
    await turn();
    await limiter.arrive(0);
    expect(await all).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('measures a deadline from the arrival of the request, including the wait for an earlier round trip', async () => {
    const limiter = new SlowLimiter();
    const counts = new BatchedLimiter(limiter);
    const began = performance.now();
    void counts.consume('a');
    await turn();
    const next = consumed(counts.consume('a'));
    await new Promise((resolve) => setTimeout(resolve, 30));
    await limiter.arrive(0);
    for (const { deadline } of limiter.trips) expect(deadline - began).to.be.within(50, 65);
    await limiter.arrive(1);
    expect(await next).to.equal(2);
  });

  it('does not make one client of a batch wait for another', async () => {
    const limiter = new SlowLimiter();
    const counts = new BatchedLimiter(limiter);
    void counts.consume('a');
    const other = consumed(counts.consume('b'));
    await turn();
    expect(limiter.seen).to.deep.equal([['a', 1], ['b', 1]]); // prettier-ignore
    await limiter.arrive(1);
    expect(await other).to.equal(1);
  });

  it('fails only the requests that shared a failed round trip', async () => {
    const limiter = new SlowLimiter();
    const counts = new BatchedLimiter(limiter);
    const outage = new Error('the store is down');
    const settled = Promise.allSettled([1, 2].map(() => consumed(counts.consume('a'))));
    await turn();
    const next = consumed(counts.consume('a'));
    await limiter.arrive(0, outage);
    await limiter.arrive(1);
    expect(await settled).to.deep.equal([
      { status: 'rejected', reason: outage },
      { status: 'rejected', reason: outage },
    ]);
    expect(await next).to.equal(1);
  });

  it('sends the counts of all clients in one write, and the next write after its response', async () => {
    const limiter = new SlowLimiter();
    const counts = new BatchedLimiter(limiter);
    for (const key of ['a', 'b', 'a', 'c']) void counts.consume(key);
    await turn();
    expect(limiter.batches).to.deep.equal([[['a', 2], ['b', 1], ['c', 1]]]); // prettier-ignore
    for (const key of ['a', 'd']) void counts.consume(key);
    for (const trip of [0, 1]) await limiter.arrive(trip);
    expect(limiter.batches).to.have.length(1);
    await limiter.arrive(2);
    expect(limiter.batches.slice(1)).to.deep.equal([[['a', 1], ['d', 1]]]); // prettier-ignore
  });

  it('sends the next batch after ten milliseconds even if the previous one is pending', async () => {
    const limiter = new SlowLimiter();
    const counts = new BatchedLimiter(limiter);
    const slow = consumed(counts.consume('a'));
    await turn();
    const next = consumed(counts.consume('b'));
    await new Promise((resolve) => setTimeout(resolve, 25));
    expect(limiter.seen).to.deep.equal([['a', 1], ['b', 1]]); // prettier-ignore
    await limiter.arrive(1);
    expect(await next).to.equal(1);
    await limiter.arrive(0);
    expect(await slow).to.equal(1);
  });

  it('starts a new round trip after a pause', async () => {
    const limiter = new SlowLimiter();
    const counts = new BatchedLimiter(limiter);
    const first = consumed(counts.consume('a'));
    await turn();
    await limiter.arrive(0);
    expect(await first).to.equal(1);
    const second = consumed(counts.consume('a'));
    await turn();
    await limiter.arrive(1);
    expect(await second).to.equal(2);
  });
});
