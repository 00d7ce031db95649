import type { Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import { describeRedisError } from '../../redis/redis.js';
import type { Logger } from '../../util/log.js';
import { LocalWindows, type RateLimitPolicy, type RateLimitState } from './windows.js';
import { RedisTimeoutError, RedisWindows } from './redis-windows.js';

/** After a timeout, checks are counted locally for this time, in milliseconds; then one command tries Redis again. */
export const RETRY_PAUSE_MS = 1000;

/**
 * Maximum number of remembered clients that have no points left. Beyond it, the clients that ran out of points earliest
 * are forgotten and checked again.
 */
const MAX_EXHAUSTED = 10_000;

/** Counters of one policy since the process started. */
export interface RateLimitStats {
  outcomes: { passed: number; limited: number; bypassed: number };
  /** Checks that this process counted because Redis failed or timed out. */
  fallbacks: number;
}

export interface RateLimiterDeps {
  /** Shared by all replicas; without Redis, each process counts separately. */
  redis: Redis | undefined;
  /** Separates the keys of this registry from other registries on the same Redis. */
  slug: string;
  log: Logger;
  /** By policy name. */
  stats: Map<string, RateLimitStats>;
}

/** Counts points in Redis for all replicas, or in this process's memory while Redis is down or slow. */
export class FailoverLimiter {
  /** The caller counts the outcomes. */
  readonly stats: RateLimitStats = { outcomes: { passed: 0, limited: 0, bypassed: 0 }, fallbacks: 0 };
  /**
   * Windows that count while Redis is unavailable. They do not include points counted by Redis. A check that timed out
   * is counted here, and Redis may count it later, too.
   */
  #local: LocalWindows | undefined;
  readonly #shared: RedisWindows | undefined;
  /** Clients that have no points left, until their windows end. */
  readonly #exhausted = new LRUCache<string, true>({ max: MAX_EXHAUSTED });
  /** Time until which checks do not wait for Redis, as `performance.now()`; 0 while Redis responds. */
  #localUntil = 0;

  constructor(
    protected readonly policy: RateLimitPolicy,
    private readonly deps: RateLimiterDeps,
  ) {
    const { redis, slug, stats } = deps;
    if (policy.points > 0) stats.set(policy.name, this.stats);
    this.#shared = redis && new RedisWindows(redis, slug, policy);
  }

  /** The state of a client that is known to have no points left. */
  exhausted(client: string): RateLimitState | undefined {
    const msLeft = this.#exhausted.getRemainingTTL(client);
    return msLeft > 0 ? { allowed: false, used: this.policy.points, msLeft } : undefined;
  }

  /**
   * Adds points to the window of a client if they fit into the limit. A check of 0 points shows whether points are
   * left. A client without points is rejected without a Redis call. Never throws.
   */
  async take(client: string, points: number): Promise<RateLimitState> {
    const exhausted = this.exhausted(client);
    if (exhausted !== undefined) return exhausted;
    const shared = this.#shared;
    const now = performance.now();
    let state: RateLimitState | undefined;
    if (shared !== undefined && now >= this.#localUntil) {
      // After a failure, one check at a time tries Redis. Other checks are counted locally until a command succeeds.
      if (this.#localUntil > 0) this.#localUntil = now + RETRY_PAUSE_MS;
      try {
        state = await shared.take(client, points);
        this.#localUntil = 0;
      } catch (error) {
        const { redis, log } = this.deps;
        const reason = `${describeRedisError(error, redis as Redis)}: counting locally`;
        if (this.#localUntil === 0) log.warn({ err: error, policy: this.policy.name }, reason);
        // Errors other than timeouts occur without a delay, so the next check tries Redis again.
        this.#localUntil = performance.now() + (error instanceof RedisTimeoutError ? RETRY_PAUSE_MS : 0);
      }
    }
    if (state === undefined) {
      if (shared !== undefined) this.stats.fallbacks++;
      this.#local ??= new LocalWindows(this.policy);
      state = await this.#local.take(client, points);
      if (this.policy.isLockout !== true) return state;
    }
    if (state.used >= this.policy.points)
      this.#exhausted.set(client, true, { ttl: Math.max(1, state.msLeft) });
    return state;
  }
}
