import { RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';

/** Where a request stands in its client's budget. */
export interface Count {
  /** Points used in this window, by this request and all before it. */
  consumed: number;
  /** Until the window ends. */
  msBeforeNext: number;
}

interface Waiting {
  resolve: (count: Count) => void;
  reject: (error: unknown) => void;
}

/**
 * Counts requests, many of one client in one trip to the store: those that come in one turn of the event loop share it,
 * and those that come while it is under way share the next one. Each gets the count that it would have got by itself, in
 * the order of their coming.
 */
export class JointCount {
  /** By the key of each client for whom a trip is under way or about to begin: who goes with the next. */
  readonly #waiting = new Map<string, Waiting[]>();

  constructor(private readonly limiter: RateLimiterAbstract) {}

  /** Counts one request. @throws what the store throws; that a budget is used up is no error. */
  add(key: string): Promise<Count> {
    return new Promise((resolve, reject) => {
      const next = this.#waiting.get(key);
      if (next !== undefined) {
        next.push({ resolve, reject });
        return;
      }
      this.#waiting.set(key, [{ resolve, reject }]);
      setImmediate(() => void this.#travel(key));
    });
  }

  async #travel(key: string): Promise<void> {
    for (let group = this.#take(key); group.length > 0; group = this.#take(key)) {
      try {
        const { consumedPoints, msBeforeNext } = await consume(this.limiter, key, group.length);
        const before = consumedPoints - group.length;
        for (const [i, { resolve }] of group.entries()) resolve({ consumed: before + i + 1, msBeforeNext });
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#waiting.delete(key);
  }

  #take(key: string): Waiting[] {
    const group = this.#waiting.get(key) ?? [];
    this.#waiting.set(key, []);
    return group;
  }
}

/** A used-up budget is an answer like any other. */
async function consume(limiter: RateLimiterAbstract, key: string, points: number): Promise<RateLimiterRes> {
  try {
    return await limiter.consume(key, points);
  } catch (rejection) {
    if (rejection instanceof RateLimiterRes) return rejection;
    throw rejection;
  }
}
