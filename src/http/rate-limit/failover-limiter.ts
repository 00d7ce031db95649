import type { Redis } from 'ioredis';
import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  type RateLimiterAbstract,
} from 'rate-limiter-flexible';
import { describeRedisError } from '../../clients/redis.js';
import type { Logger } from '../../log.js';

/** Timeout of one rate-limit check on Redis, in milliseconds. */
export const REDIS_TIMEOUT_MS = 50;

/** Points of each client in a fixed window of time. */
export interface RateLimitPolicy {
  /** Names the policy in headers, metrics and Redis keys. */
  name: string;
  points: number;
  windowSeconds: number;
}

/** The state of one client. */
export interface RateLimitState {
  /** Points used in this window. */
  consumed: number;
  /** Until the window ends. */
  msBeforeNext: number;
}

/** Counters of one policy since the process started. */
export interface RateLimitStats {
  outcomes: { passed: number; limited: number; bypassed: number };
  /** Checks on Redis that failed or timed out. */
  fallbacks: number;
}

export interface RateLimiterDeps {
  /** Shared by all replicas; without it, each process counts separately. */
  redis: Redis | undefined;
  /** Separates the keys of this registry from those of others on the same Redis. */
  slug: string;
  log: Logger;
  /** By policy name. */
  stats: Map<string, RateLimitStats>;
}

/**
 * Counts on Redis for all replicas, and in this process's memory while Redis is down or slow. Clients over
 * the limit are rejected without a Redis call. Never throws.
 */
export class FailoverLimiter {
  /** The caller counts the outcomes. */
  readonly stats: RateLimitStats = { outcomes: { passed: 0, limited: 0, bypassed: 0 }, fallbacks: 0 };
  readonly #memory: RateLimiterMemory;
  readonly #shared: RateLimiterRedis | undefined;
  readonly #redis: Redis | undefined;
  readonly #log: Logger;
  #isRedisUp = true;

  constructor(
    private readonly policy: RateLimitPolicy,
    { redis, slug, log, stats }: RateLimiterDeps,
  ) {
    const { name, points, windowSeconds } = policy;
    const options = { points, duration: windowSeconds, keyPrefix: `${slug}:limit:${name}` };
    this.#redis = redis;
    this.#log = log;
    stats.set(name, this.stats);
    this.#memory = new RateLimiterMemory(options);
    if (redis === undefined) return;
    this.#shared = new RateLimiterRedis({
      ...options,
      storeClient: redis,
      rejectIfRedisNotReady: true,
      inMemoryBlockOnConsumed: points + 1,
    });
  }

  /**
   * Uses points of a client.
   * @param deadline of Redis, by `performance.now()`.
   * @returns the state after the last of them.
   */
  consume(
    key: string,
    points: number,
    deadline = performance.now() + REDIS_TIMEOUT_MS,
  ): Promise<RateLimitState> {
    return this.#withFailover(deadline, (limiter) => this.#consume(limiter, key, points));
  }

  /** Sends all commands of the `consume` calls in `send` in one write: a write costs more than a command. */
  batch(send: () => void): void {
    const { stream } = this.#redis ?? {};
    stream?.cork();
    send();
    stream?.uncork();
  }

  /** The state of a client; uses no points. */
  async peek(key: string): Promise<RateLimitState> {
    const deadline = performance.now() + REDIS_TIMEOUT_MS;
    const state = await this.#withFailover(deadline, (limiter) => limiter.get(key));
    // A Redis that is full or a replica can be read, but points are counted in this process.
    const local = await this.#memory.get(key);
    const most = (local?.consumedPoints ?? 0) > (state?.consumedPoints ?? 0) ? local : state;
    return { consumed: most?.consumedPoints ?? 0, msBeforeNext: most?.msBeforeNext ?? 0 };
  }

  async #withFailover<T>(deadline: number, check: (limiter: RateLimiterAbstract) => Promise<T>): Promise<T> {
    if (this.#shared === undefined || this.#redis === undefined) return check(this.#memory);
    try {
      const state = await withDeadline(check(this.#shared), deadline);
      this.#isRedisUp = true;
      return state;
    } catch (error) {
      this.stats.fallbacks++;
      if (this.#isRedisUp) {
        const reason = describeRedisError(error, this.#redis);
        this.#log.warn({ err: error, budget: this.policy.name }, `${reason}: counting locally`);
      }
      this.#isRedisUp = false;
      return check(this.#memory);
    }
  }

  /** The library throws the state of a client over the limit; here it is returned like any other. */
  async #consume(limiter: RateLimiterAbstract, key: string, points: number): Promise<RateLimitState> {
    try {
      const { consumedPoints, msBeforeNext } = await limiter.consume(key, points);
      return { consumed: consumedPoints, msBeforeNext };
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) throw rejection;
      const { consumedPoints, msBeforeNext } = rejection;
      // 0 if the client is blocked in memory, without a Redis call.
      return { consumed: consumedPoints === 0 ? this.policy.points + points : consumedPoints, msBeforeNext };
    }
  }
}

/**
 * Rejects at the deadline, unless the response has arrived by then and this process was too busy to read it.
 */
async function withDeadline<T>(response: Promise<T>, deadline: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    const expire = () => reject(new Error('Redis did not respond in time'));
    timer = setTimeout(() => setImmediate(expire), deadline - performance.now());
  });
  try {
    return await Promise.race([response, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
