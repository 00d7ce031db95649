import type { Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import { describeRedisError } from '../../clients/redis.js';
import type { Logger } from '../../log.js';
import { FixedWindows, type RateLimitPolicy, type RateLimitState } from './fixed-windows.js';

/** Timeout of one check on Redis, in milliseconds. */
export const REDIS_TIMEOUT_MS = 50;

/**
 * After a timeout, one check in this time waits for Redis, in milliseconds; the others are counted locally, in windows that begin
 * empty. Redis may execute later what has timed out.
 */
export const RETRY_PAUSE_MS = 1000;

/** Clients without points that are remembered at most. Of more, those seen least recently are asked for again. */
const MAX_EXHAUSTED = 10_000;

/** Counters of one policy since the process started. */
export interface RateLimitStats {
  outcomes: { passed: number; limited: number; bypassed: number };
  /** Checks that this process counted because Redis failed or timed out. */
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

/** Counts on Redis for all replicas, and in this process's memory while Redis is down or slow. */
export class FailoverLimiter {
  /** The caller counts the outcomes. */
  readonly stats: RateLimitStats = { outcomes: { passed: 0, limited: 0, bypassed: 0 }, fallbacks: 0 };
  /** The windows while Redis is down or slow, or without Redis. */
  readonly local: FixedWindows;
  readonly #shared: FixedWindows | undefined;
  /** Clients that have no points left on Redis, until their windows end. */
  readonly #exhausted = new LRUCache<string, true>({ max: MAX_EXHAUSTED });
  #isRedisUp = true;
  /** Until then, by `performance.now()`, checks do not wait for Redis. */
  #localUntil = 0;

  constructor(
    private readonly policy: RateLimitPolicy,
    private readonly deps: RateLimiterDeps,
  ) {
    const { redis, slug, stats } = deps;
    stats.set(policy.name, this.stats);
    this.local = FixedWindows.inMemory(policy);
    this.#shared = redis && FixedWindows.onRedis(redis, slug, policy);
  }

  /**
   * Adds points of a client if they fit. Adding 0 points shows whether any are left. A client that has none left is
   * rejected without a Redis call. Never throws.
   */
  async take(client: string, points: number): Promise<RateLimitState> {
    const msLeft = this.#exhausted.getRemainingTTL(client);
    if (msLeft > 0) return { allowed: false, used: this.policy.points, msLeft };
    if (this.#shared === undefined) return this.local.take(client, points);
    const shared = await this.#takeShared(this.#shared, client, points);
    if (shared !== undefined) return shared;
    this.stats.fallbacks++;
    return this.local.take(client, points);
  }

  /** @returns undefined if Redis fails, is too slow, or was too slow less than a second ago. */
  async #takeShared(
    windows: FixedWindows,
    client: string,
    points: number,
  ): Promise<RateLimitState | undefined> {
    const now = performance.now();
    if (now < this.#localUntil) return undefined;
    // Until this check has succeeded, no other one waits.
    if (!this.#isRedisUp) this.#localUntil = now + RETRY_PAUSE_MS;
    try {
      const state = await withTimeout(windows.take(client, points));
      this.#isRedisUp = true;
      this.#localUntil = 0;
      const isExhausted = state.used >= this.policy.points;
      if (isExhausted) this.#exhausted.set(client, true, { ttl: Math.max(1, state.msLeft) });
      return state;
    } catch (error) {
      if (this.#isRedisUp) this.#logOutage(error);
      this.#isRedisUp = false;
      // Other errors occur at once, so the next check can ask again.
      this.#localUntil = error instanceof RedisTimeoutError ? performance.now() + RETRY_PAUSE_MS : 0;
      return undefined;
    }
  }

  #logOutage(error: unknown): void {
    const { redis, log } = this.deps;
    const reason = describeRedisError(error, redis as Redis);
    log.warn({ err: error, budget: this.policy.name }, `${reason}: counting locally`);
  }
}

class RedisTimeoutError extends Error {
  override readonly message = 'Redis did not respond in time';
}

/**
 * Rejects after `REDIS_TIMEOUT_MS`, but reads what has arrived first: this process may have been suspended or too busy
 * to read a response in time. The timeout of ioredis discards such responses.
 */
async function withTimeout<T>(response: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    const expire = () => reject(new RedisTimeoutError());
    timer = setTimeout(() => setImmediate(expire), REDIS_TIMEOUT_MS);
  });
  try {
    return await Promise.race([response, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
