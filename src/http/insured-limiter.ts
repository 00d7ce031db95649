import type { Redis } from 'ioredis';
import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  type RateLimiterAbstract,
} from 'rate-limiter-flexible';
import type { Logger } from '../log.js';

/** For so long a request may be held up by counting it, in milliseconds. */
export const PATIENCE_MS = 50;

/** A number of points in a fixed window of time, for each client. */
export interface Budget {
  /** Names the budget in the headers and in Redis. */
  name: string;
  points: number;
  windowSeconds: number;
}

/** Where a client stands in its budget. */
export interface Count {
  /** Points used in this window. */
  consumed: number;
  /** Until the window ends. */
  msBeforeNext: number;
}

/** What became of the requests that a budget applies to, so far. */
export interface Tally {
  outcomes: { passed: number; limited: number; bypassed: number };
  /** Trips to Redis that failed or took too long. */
  fallbacks: number;
}

export interface LimiterStore {
  /** Keeps the counts for all replicas; without it this process counts for itself. */
  redis: Redis | undefined;
  /** Tells the counts of this registry from those of a sibling on the same Redis. */
  slug: string;
  log: Logger;
  /** Of each budget, by its name. */
  tallies: Map<string, Tally>;
}

/**
 * Counts on Redis, for all replicas; and in this process alone where Redis is away or does not answer in time. Who has
 * used up a budget is remembered here until the window ends, so that a flood costs Redis nothing. Never throws.
 */
export class InsuredLimiter {
  /** Whoever asks counts the outcomes. */
  readonly tally: Tally = { outcomes: { passed: 0, limited: 0, bypassed: 0 }, fallbacks: 0 };
  readonly #own: RateLimiterMemory;
  readonly #shared: RateLimiterRedis | undefined;
  readonly #redis: Redis | undefined;
  readonly #log: Logger;
  #answered = true;

  constructor(
    private readonly budget: Budget,
    { redis, slug, log, tallies }: LimiterStore,
  ) {
    const { name, points, windowSeconds } = budget;
    const rule = { points, duration: windowSeconds, keyPrefix: `${slug}:limit:${name}` };
    this.#redis = redis;
    this.#log = log;
    tallies.set(name, this.tally);
    this.#own = new RateLimiterMemory(rule);
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
  consume(key: string, points: number, deadline = performance.now() + PATIENCE_MS): Promise<Count> {
    return this.#insured(deadline, (limiter) => this.#consume(limiter, key, points));
  }

  /** Sends in one write what `count` sends by calling `consume`: a write costs more than a command. */
  batch(count: () => void): void {
    const { stream } = this.#redis ?? {};
    stream?.cork();
    count();
    stream?.uncork();
  }

  /** Where a client stands, without using any of its budget. */
  async used(key: string): Promise<Count> {
    const used = await this.#insured(performance.now() + PATIENCE_MS, (limiter) => limiter.get(key));
    return { consumed: used?.consumedPoints ?? 0, msBeforeNext: used?.msBeforeNext ?? 0 };
  }

  async #insured<T>(deadline: number, count: (limiter: RateLimiterAbstract) => Promise<T>): Promise<T> {
    if (this.#shared === undefined) return count(this.#own);
    try {
      const counted = await inTime(count(this.#shared), deadline);
      this.#answered = true;
      return counted;
    } catch (error) {
      this.tally.fallbacks++;
      if (this.#answered)
        this.#log.warn({ err: error, budget: this.budget.name }, 'this process counts for itself');
      this.#answered = false;
      return count(this.#own);
    }
  }

  /** That a budget is used up is a count like any other. */
  async #consume(limiter: RateLimiterAbstract, key: string, points: number): Promise<Count> {
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
async function inTime<T>(answer: Promise<T>, deadline: number): Promise<T> {
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
