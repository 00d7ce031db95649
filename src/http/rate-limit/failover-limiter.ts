import type { Redis } from 'ioredis';
import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  type RateLimiterAbstract,
} from 'rate-limiter-flexible';
import type { Logger } from '../../log.js';

/** For so long a request may be held up by counting it, in milliseconds. */
export const REDIS_TIMEOUT_MS = 50;

/** A number of points in a fixed window of time, for each client. */
export interface RateLimitPolicy {
  /** Names the budget in the headers and in Redis. */
  name: string;
  points: number;
  windowSeconds: number;
}

/** Where a client stands in its budget. */
export interface RateLimitState {
  /** Points used in this window. */
  consumed: number;
  /** Until the window ends. */
  msBeforeNext: number;
}

/** What became of the requests that a budget applies to, so far. */
export interface RateLimitStats {
  outcomes: { passed: number; limited: number; bypassed: number };
  /** Trips to Redis that failed or took too long. */
  fallbacks: number;
}

export interface RateLimiterDeps {
  /** Keeps the counts for all replicas; without it this process counts for itself. */
  redis: Redis | undefined;
  /** Tells the counts of this registry from those of a sibling on the same Redis. */
  slug: string;
  log: Logger;
  /** Of each budget, by its name. */
  stats: Map<string, RateLimitStats>;
}

/**
 * Counts on Redis, for all replicas; and in this process alone where Redis is away or does not answer in time. Who has
 * used up a budget is remembered here until the window ends, so that a flood costs Redis nothing. Never throws.
 */
export class FailoverLimiter {
  /** Whoever asks counts the outcomes. */
  readonly stats: RateLimitStats = { outcomes: { passed: 0, limited: 0, bypassed: 0 }, fallbacks: 0 };
  readonly #memory: RateLimiterMemory;
  readonly #shared: RateLimiterRedis | undefined;
  readonly #redis: Redis | undefined;
  readonly #log: Logger;
  #isRedisUp = true;

  constructor(
    private readonly budget: RateLimitPolicy,
    { redis, slug, log, stats }: RateLimiterDeps,
  ) {
    const { name, points, windowSeconds } = budget;
    const rule = { points, duration: windowSeconds, keyPrefix: `${slug}:limit:${name}` };
    this.#redis = redis;
    this.#log = log;
    stats.set(name, this.stats);
    this.#memory = new RateLimiterMemory(rule);
    if (redis === undefined) return;
    this.#shared = new RateLimiterRedis({
      ...rule,
      storeClient: redis,
      rejectIfRedisNotReady: true,
      inMemoryBlockOnConsumed: points + 1,
    });
  }

  /**
   * Uses points of a client.
   * @param deadline when Redis must have answered, by `performance.now()`.
   * @returns where the client stands after the last of them.
   */
  consume(
    key: string,
    points: number,
    deadline = performance.now() + REDIS_TIMEOUT_MS,
  ): Promise<RateLimitState> {
    return this.#withFailover(deadline, (limiter) => this.#consume(limiter, key, points));
  }

  /** Sends in one write what `count` sends by calling `consume`: a write costs more than a command. */
  batch(count: () => void): void {
    const { stream } = this.#redis ?? {};
    stream?.cork();
    count();
    stream?.uncork();
  }

  /** Where a client stands, without using any of its budget. */
  async peek(key: string): Promise<RateLimitState> {
    const used = await this.#withFailover(performance.now() + REDIS_TIMEOUT_MS, (limiter) =>
      limiter.get(key),
    );
    return { consumed: used?.consumedPoints ?? 0, msBeforeNext: used?.msBeforeNext ?? 0 };
  }

  async #withFailover<T>(deadline: number, count: (limiter: RateLimiterAbstract) => Promise<T>): Promise<T> {
    if (this.#shared === undefined) return count(this.#memory);
    try {
      const counted = await withDeadline(count(this.#shared), deadline);
      this.#isRedisUp = true;
      return counted;
    } catch (error) {
      this.stats.fallbacks++;
      if (this.#isRedisUp)
        this.#log.warn({ err: error, budget: this.budget.name }, 'this process counts for itself');
      this.#isRedisUp = false;
      return count(this.#memory);
    }
  }

  /** That a budget is used up is a count like any other. */
  async #consume(limiter: RateLimiterAbstract, key: string, points: number): Promise<RateLimitState> {
    try {
      const { consumedPoints, msBeforeNext } = await limiter.consume(key, points);
      return { consumed: consumedPoints, msBeforeNext };
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) throw rejection;
      const { consumedPoints, msBeforeNext } = rejection;
      // 0: it was known without asking.
      return { consumed: consumedPoints === 0 ? this.budget.points + points : consumedPoints, msBeforeNext };
    }
  }
}

/** Rejects at the deadline. An answer that came by then, while this process was busy, is taken all the same. */
async function withDeadline<T>(answer: Promise<T>, deadline: number): Promise<T> {
  let late: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    const giveUp = () => reject(new Error('Redis did not answer in time'));
    late = setTimeout(() => setImmediate(giveUp), deadline - performance.now());
  });
  try {
    return await Promise.race([answer, tooLate]);
  } finally {
    clearTimeout(late);
  }
}
