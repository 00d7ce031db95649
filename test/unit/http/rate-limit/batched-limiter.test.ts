import { expect } from 'chai';
import {
  FailoverLimiter,
  REDIS_TIMEOUT_MS,
  type RateLimitState,
} from '../../../../src/http/rate-limit/failover-limiter.js';
import { BatchedLimiter, MAX_BATCH_WAIT_MS } from '../../../../src/http/rate-limit/batched-limiter.js';
import { createLogger } from '../../../../src/log.js';
import { waitFor } from '../../../support/wait-for.js';

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
const turn = () => new Promise(setImmediate);

describe('BatchedLimiter', () => {
  const consumed = async (count: Promise<{ consumed: number }>) => (await count).consumed;
  let limiter: SlowLimiter;
  let counts: BatchedLimiter;

  /** Counts requests of these clients that arrive together. @returns the count of each. */
  const consume = (...keys: string[]) => Promise.all(keys.map((key) => consumed(counts.consume(key))));

  beforeEach(() => {
    limiter = new SlowLimiter();
    // A busy processor must not end the wait for a round trip.
    counts = new BatchedLimiter(limiter, 10_000);
  });

  it('counts the points of each request, in order of arrival', async () => {
    const quick = new BatchedLimiter(new FailoverLimiter(BUDGET, STORE));
    const states = [quick.consume('p'), quick.consume('p', 3), quick.consume('p', 2), quick.consume('q', 3)];
    expect(await Promise.all(states.map(consumed))).to.deep.equal([1, 4, 6, 3]);
    for (const expected of [7, 8, 9]) {
      const count = await quick.consume('p');
      expect(count.consumed).to.equal(expected);
      expect(count.msBeforeNext).to.be.within(1, 60_000);
    }
  });

  it('combines concurrent requests into one round trip, each with its own count', async () => {
    const together = consume('a', 'a');
    await turn();
    expect(limiter.seen).to.deep.equal([['a', 2]]);
    const during = consume('a', 'a', 'a', 'a', 'a', 'a');
    await turn();
    expect(limiter.seen).to.deep.equal([['a', 2]]);
    await limiter.arrive(0);
    expect(await together).to.deep.equal([1, 2]);
    expect(limiter.seen.slice(1)).to.deep.equal([['a', 6]]);
    await limiter.arrive(1);
    expect(await during, 'beyond the budget, too').to.deep.equal([3, 4, 5, 6, 7, 8]);
    const later = consume('a');
    await turn();
    await limiter.arrive(2);
    expect(await later).to.deep.equal([9]);
    expect(limiter.seen).to.have.length(3);
  });

  it('measures a deadline from the arrival of the request, including the wait for an earlier round trip', async () => {
    expect(REDIS_TIMEOUT_MS).to.equal(50);
    const began = performance.now();
    void counts.consume('a');
    await turn();
    const next = consume('a');
    const queued = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 30));
    await limiter.arrive(0);
    for (const { deadline } of limiter.trips)
      expect(deadline).to.be.within(began + REDIS_TIMEOUT_MS, queued + REDIS_TIMEOUT_MS);
    await limiter.arrive(1);
    expect(await next).to.deep.equal([2]);
  });

  it('does not make one client of a batch wait for another', async () => {
    void counts.consume('a');
    const other = consume('b');
    await turn();
    expect(limiter.seen).to.deep.equal([['a', 1], ['b', 1]]); // prettier-ignore
    await limiter.arrive(1);
    expect(await other).to.deep.equal([1]);
  });

  it('fails only the requests that shared a failed round trip', async () => {
    const reason = new Error('the store is down');
    const settled = Promise.allSettled([counts.consume('a'), counts.consume('a')]);
    await turn();
    const next = consume('a');
    await limiter.arrive(0, reason);
    await limiter.arrive(1);
    expect(await settled).to.deep.equal(Array(2).fill({ status: 'rejected', reason }));
    expect(await next).to.deep.equal([1]);
  });

  it('sends the counts of all clients in one write, and the next write after its response', async () => {
    void consume('a', 'b', 'a', 'c');
    await turn();
    expect(limiter.batches).to.deep.equal([[['a', 2], ['b', 1], ['c', 1]]]); // prettier-ignore
    void consume('a', 'd');
    for (const trip of [0, 1]) await limiter.arrive(trip);
    expect(limiter.batches).to.have.length(1);
    await limiter.arrive(2);
    expect(limiter.batches.slice(1)).to.deep.equal([[['a', 1], ['d', 1]]]); // prettier-ignore
  });

  it('sends the next batch after ten milliseconds even if the previous one is pending', async () => {
    expect(MAX_BATCH_WAIT_MS).to.equal(10);
    counts = new BatchedLimiter(limiter);
    const slow = consume('a');
    await turn();
    const next = consume('b');
    await waitFor(() => limiter.trips.length > 1, 'the next batch');
    expect(limiter.seen).to.deep.equal([['a', 1], ['b', 1]]); // prettier-ignore
    await limiter.arrive(1);
    expect(await next).to.deep.equal([1]);
    await limiter.arrive(0);
    expect(await slow).to.deep.equal([1]);
  });
});
