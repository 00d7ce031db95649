import { Problem, retryAfter } from '../problems/problem.js';
import type { Context } from '../request/request-context.js';
import { FailoverLimiter } from './failover-limiter.js';
import type { RateLimitState } from './windows.js';

/** Points of a request: a number, or the result of `of` for its query string. `shown` describes `of` in `/debug-ip`. */
export type Cost = number | { shown: object; of: (querystring: string) => number };

/** A limit on the requests of each client; with 0 points, there is no limit. */
export class RateLimit extends FailoverLimiter {
  /**
   * Counts a request. A request with a valid bypass token is free.
   * @param cost of the request. A cost above the whole limit is reduced to the limit.
   * @throws {Problem} 429 if the points of the request do not fit into the limit. The points are then not counted.
   */
  async count({ state, querystring }: Context, cost: Cost): Promise<void> {
    const { name, points: limit, windowSeconds } = this.policy;
    if (limit === 0) return;
    if (state.bypassSecondsLeft > 0) {
      this.stats.outcomes.bypassed++;
      return;
    }
    const client = state.address.key;
    // If the client has no points left, the query string is not parsed: a cost of one point is enough to reject the
    // request.
    const isRejected = typeof cost !== 'number' && this.exhausted(client) !== undefined;
    const points = Math.min(isRejected ? 1 : pointsOf(cost, querystring), limit);
    const window = await this.take(client, points);
    // If another replica has a higher limit, `used` may exceed this limit.
    const left = Math.max(0, limit - window.used);
    const seconds = secondsLeft(window);
    // The IETF draft "RateLimit header fields for HTTP".
    const policy = `"${name}";q=${limit};w=${windowSeconds}`;
    state.headerFields.push('RateLimit-Policy', policy, 'RateLimit', `"${name}";r=${left};t=${seconds}`);
    this.stats.outcomes[window.allowed ? 'passed' : 'limited']++;
    if (window.allowed) return;
    const end = new Date(Date.now() + seconds * 1000).toISOString().replace(/\.\d+/, '');
    const costs = `this request costs ${points} ${points === 1 ? 'point' : 'points'}`;
    throw rateLimited(window, `${costs}, ${left} left until ${end}`);
  }

  /** The state of a client, for `/debug-ip`; null if there is no limit. Uses no points. */
  async usage(client: string): Promise<{ limit: number; remaining: number; reset_seconds: number } | null> {
    const { points: limit } = this.policy;
    if (limit === 0) return null;
    const window = await this.take(client, 0);
    return { limit, remaining: Math.max(0, limit - window.used), reset_seconds: secondsLeft(window) };
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
export function rateLimited(window: RateLimitState, detail: string): Problem {
  return new Problem('rate_limited', { headers: retryAfter(secondsLeft(window)), detail });
}

/** Seconds until the window ends, rounded up, at least 1. */
function secondsLeft({ msLeft }: RateLimitState): number {
  return Math.max(1, Math.ceil(msLeft / 1000));
}
