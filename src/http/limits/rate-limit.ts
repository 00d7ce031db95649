import type { Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { createRedis, describeRedisError } from '../../redis/redis.js';
import type { Logger } from '../../util/log.js';
import { Problem, retryAfter } from '../problems/problem.js';
import type { Context } from '../request/request-context.js';

/** Maximum number of clients counted in memory, 760 bytes each. Beyond it, the least recently seen ones start anew. */
const MAX_CLIENTS = 20_000;

/** Maximum number of remembered clients without points. Redis rejects further ones. */
const MAX_EXHAUSTED = 10_000;

/** A reason why Redis fails is logged again if it has not occurred for this time, in milliseconds. */
const LOG_AGAIN_MS = 60_000;

/** Timeout of a check on Redis, in milliseconds. */
const CHECK_TIMEOUT_MS = 50;

/** The effect on the server if the connection fails, for the log. */
const LIMITS_ARE_LOCAL = 'each replica counts requests separately';

/** Connects the limits to Redis. @returns after the first attempt to connect, whether or not it succeeded. */
export function connectForLimits(url: string, log: Logger): Promise<Redis> {
  return createRedis(url, log, LIMITS_ARE_LOCAL, CHECK_TIMEOUT_MS);
}

/** Counters of one policy since the process started. */
export interface RateLimitStats {
  outcomes: Record<'passed' | 'limited' | 'bypassed', number>;
  /** Checks in memory because Redis failed or timed out. */
  fallbacks: number;
}

export interface RateLimitDeps {
  /** Shared by all replicas; without Redis, each process counts separately. */
  redis: Redis | undefined;
  /** Separates the keys of this registry from other registries on the same Redis. */
  slug: string;
  log: Logger;
  /** By policy name. */
  stats: Map<string, RateLimitStats>;
}

/** Points of a request: a number, or the result of `of` for its query string. `shown` describes `of` in `/debug-ip`. */
export type Cost = number | { shown: object; of: (querystring: string) => number };

/**
 * A limit on the points of each client in a fixed window of time, which begins with the client's first request. Points
 * are counted on Redis for all replicas, or in this process's memory while Redis fails or is slow.
 */
export class RateLimit {
  readonly stats: RateLimitStats = { outcomes: { passed: 0, limited: 0, bypassed: 0 }, fallbacks: 0 };
  readonly #redis: RateLimiterRedis | undefined;
  /** Does not include points counted on Redis. A check that timed out may be counted on both. */
  readonly #memory: RateLimiterMemory;
  readonly #clients = new LRUCache<string, true>({
    max: MAX_CLIENTS,
    dispose: (_value, client) => void this.#memory.delete(client),
  });
  /** Clients that have no points left, until their windows end. */
  readonly #exhausted = new LRUCache<string, true>({ max: MAX_EXHAUSTED });
  /** As in the IETF draft "RateLimit header fields for HTTP". */
  readonly #policyHeader: string;
  readonly #loggedReasons = new LRUCache<string, true>({ max: 10, ttl: LOG_AGAIN_MS });

  /** @param policy its name is used in headers, metrics and Redis keys; with 0 points, there is no limit. */
  constructor(
    private readonly policy: { name: string; points: number; windowSeconds: number },
    private readonly deps: RateLimitDeps,
  ) {
    const { name, points, windowSeconds: duration } = policy;
    const { redis: storeClient, slug, stats } = deps;
    this.#policyHeader = `"${name}";q=${points};w=${duration}`;
    const options = { points, duration, keyPrefix: `${slug}:limit:${name}` };
    this.#memory = new RateLimiterMemory(options);
    if (storeClient)
      this.#redis = new RateLimiterRedis({ ...options, storeClient, rejectIfRedisNotReady: true });
    if (points > 0) stats.set(name, this.stats);
  }

  get isOff(): boolean {
    return this.policy.points === 0;
  }

  /**
   * Counts a request. A request with a valid bypass token is free.
   * @param cost of the request. A cost above the whole limit is reduced to the limit.
   * @throws {Problem} 429 if the points of the request exceed the limit. Its window then has no points left.
   */
  async count({ state, querystring }: Context, cost: Cost): Promise<void> {
    const { name, points: limit } = this.policy;
    if (state.bypassSecondsLeft > 0) {
      this.stats.outcomes.bypassed++;
      return;
    }
    const points = Math.min(pointsOf(cost, querystring), limit);
    const window = await this.consume(state.address.key, points);
    const left = `"${name}";r=${window.remainingPoints};t=${secondsLeft(window)}`;
    state.headerFields.push('RateLimit-Policy', this.#policyHeader, 'RateLimit', left);
    const isAllowed = window.consumedPoints <= limit;
    this.stats.outcomes[isAllowed ? 'passed' : 'limited']++;
    if (isAllowed) return;
    const end = new Date(Date.now() + 1000 * secondsLeft(window)).toISOString().replace(/\.\d+/, '');
    const costs = `this request costs ${points} ${points === 1 ? 'point' : 'points'}`;
    throw rateLimited(window, `${costs}, fewer were left, and the limit resets at ${end}`);
  }

  /** The window of a client, for `/debug-ip`; null if there is no limit. Uses no points. */
  async usage(client: string): Promise<{ limit: number; remaining: number; reset_seconds: number } | null> {
    if (this.isOff) return null;
    const { points: limit } = this.policy;
    const window = await this.consume(client, 0);
    return { limit, remaining: window.remainingPoints, reset_seconds: secondsLeft(window) };
  }

  /**
   * Adds points to the window of a client, even if they exceed the limit; 0 points only read it. A client without
   * points needs no Redis call until its window ends. Never throws.
   * @returns the window. If its `consumedPoints` exceed the limit, the request must be rejected.
   */
  async consume(client: string, points: number): Promise<RateLimiterRes> {
    const msLeft = this.#exhausted.getRemainingTTL(client);
    if (msLeft > 0) return new RateLimiterRes(0, msLeft, this.policy.points + 1);
    const consumed = this.#redis?.consume(client, points) ?? this.#consumeLocally(client, points);
    const window = await consumed.catch((rejection: unknown) => {
      // The library rejects with the window if the points exceed the limit, and with an error if Redis fails.
      if (rejection instanceof RateLimiterRes) return rejection;
      this.#report(rejection);
      return this.#consumeLocally(client, points);
    });
    if (window.remainingPoints === 0)
      this.#exhausted.set(client, true, { ttl: Math.max(1, window.msBeforeNext) });
    return window;
  }

  #consumeLocally(client: string, points: number): Promise<RateLimiterRes> {
    this.#clients.set(client, true);
    return this.#memory.consume(client, points).catch((window: unknown) => window as RateLimiterRes);
  }

  /** Counts a failure of Redis, and logs its reason once. */
  #report(error: unknown): void {
    const { redis, log } = this.deps;
    const reason = describeRedisError(error, redis as Redis);
    if (!this.#loggedReasons.has(reason))
      log.warn({ err: error, policy: this.policy.name }, `${reason}: counting locally`);
    this.#loggedReasons.set(reason, true);
    this.stats.fallbacks++;
  }
}

/** The points of a request. A request that will be rejected with 400 costs one point. */
function pointsOf(cost: Cost, querystring: string): number {
  if (typeof cost === 'number') return cost;
  try {
    return cost.of(querystring);
  } catch {
    return 1;
  }
}

/** A 429 problem. Its `Retry-After` is the number of seconds until the window ends. */
export function rateLimited(window: RateLimiterRes, detail: string): Problem {
  return new Problem('rate_limited', { headers: retryAfter(secondsLeft(window)), detail });
}

/** Seconds until the window ends, rounded up, at least 1. */
function secondsLeft({ msBeforeNext }: RateLimiterRes): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}
