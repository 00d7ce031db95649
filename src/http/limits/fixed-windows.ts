import type { Redis } from 'ioredis';
import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  type RateLimiterAbstract,
} from 'rate-limiter-flexible';

/** Points of each client in a fixed window of time, which begins with the client's first request. */
export interface RateLimitPolicy {
  /** Names the policy in headers, metrics and Redis keys. */
  name: string;
  points: number;
  windowSeconds: number;
}

/** The window of one client after a check. */
export interface RateLimitState {
  /** Whether the points of the check fitted into the limit; if not, none were added. */
  allowed: boolean;
  /** Points used in this window. */
  used: number;
  /** Until the window ends. */
  msLeft: number;
}

/**
 * Adds points if they fit. If not, it returns the sum that the library then rejects, because it exceeds the limit. The
 * library passes the points, the seconds of the window, and the limit.
 */
const TAKE_POINTS = `
local points, seconds, limit = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
redis.call('SET', KEYS[1], 0, 'EX', seconds, 'NX')
local sum = redis.call('GET', KEYS[1]) + points
if sum <= limit then redis.call('INCRBY', KEYS[1], points) end
return {sum, redis.call('PTTL', KEYS[1])}`;

/** Windows of all clients, to which points are added only if they fit. */
export class FixedWindows {
  private constructor(
    private readonly limiter: RateLimiterAbstract,
    /** Removes points that the limiter has added although they did not fit, if it does that. */
    private readonly giveBack?: (client: string, points: number) => Promise<unknown>,
  ) {}

  /** Windows that all replicas share. */
  static onRedis(redis: Redis, slug: string, { name, points, windowSeconds }: RateLimitPolicy): FixedWindows {
    const limiter = new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `${slug}:limit:${name}`,
      points,
      duration: windowSeconds,
      customIncrTtlLuaScript: TAKE_POINTS,
      rejectIfRedisNotReady: true,
    });
    return new FixedWindows(limiter);
  }

  /** Windows in the memory of this process. */
  static inMemory({ points, windowSeconds }: RateLimitPolicy): FixedWindows {
    const limiter = new RateLimiterMemory({ points, duration: windowSeconds });
    return new FixedWindows(limiter, (client, points) => limiter.reward(client, points));
  }

  /**
   * Adds points of a client if they fit. 0 points fit if any are left.
   * @throws {Error} of Redis, or of ioredis without a connection.
   */
  async take(client: string, points: number): Promise<RateLimitState> {
    try {
      const { consumedPoints: used, msBeforeNext: msLeft } = await this.limiter.consume(client, points);
      return { allowed: points > 0 || used < this.limiter.points, used, msLeft };
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) throw rejection;
      await this.giveBack?.(client, points);
      const { consumedPoints: sum, msBeforeNext: msLeft } = rejection;
      return { allowed: false, used: sum - points, msLeft };
    }
  }
}
