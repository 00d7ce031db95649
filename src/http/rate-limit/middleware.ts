import type { Middleware } from 'koa';
import { Problem, retryAfter } from '../problem.js';
import type { RequestState } from '../request-context.js';
import { BatchedLimiter } from './batched-limiter.js';
import {
  FailoverLimiter,
  type RateLimiterDeps,
  type RateLimitPolicy,
  type RateLimitState,
} from './failover-limiter.js';

/** The rate limit of a client, as `/debug-ip` shows it. */
export interface Usage {
  limit: number;
  remaining: number;
  reset_seconds: number;
}

/** A limit on the requests of each client. */
export interface RateLimit {
  /**
   * Counts each request, and responds 429 if the client is over the limit. Requests with a valid bypass token
   * are free.
   * @param cost of a request, in points; never more than the whole limit.
   */
  enforce(cost?: number): Middleware<RequestState>;
  /**
   * Raises the cost of a request that `enforce` has counted as one point.
   * @throws {Problem} 429 if the client is over the limit now.
   */
  raiseTo(cost: number, state: RequestState): Promise<void>;
  /** The state of a client; uses no points. Null if there is no limit. */
  usage(key: string): Promise<Usage | null>;
}

const UNLIMITED: RateLimit = {
  enforce: () => (_ctx, next) => next(),
  raiseTo: () => Promise.resolve(),
  usage: () => Promise.resolve(null),
};

/** The rate limit of a policy; 0 points mean no limit. */
export function createRateLimit(policy: RateLimitPolicy, deps: RateLimiterDeps): RateLimit {
  const { name, points, windowSeconds } = policy;
  if (points === 0) return UNLIMITED;
  const limiter = new FailoverLimiter(policy, deps);
  const batched = new BatchedLimiter(limiter);
  const { outcomes } = limiter.stats;
  const policyHeader = `"${name}";q=${points};w=${windowSeconds}`;
  const remaining = ({ consumed }: RateLimitState) => Math.max(0, points - consumed);
  const check = async ({ client, headers }: RequestState, cost: number) => {
    const state = await batched.consume(client.address.key, cost);
    // The fields of the IETF draft "RateLimit header fields for HTTP".
    const value = `"${name}";r=${remaining(state)};t=${secondsLeft(state)}`;
    headers['RateLimit-Policy'] = policyHeader;
    headers['RateLimit'] = value;
    if (state.consumed > points) throw rateLimited(state);
  };
  return {
    enforce: (cost = 1) => {
      const affordable = Math.min(cost, points);
      return async (ctx, next) => {
        if (ctx.state.client.bypassSecondsLeft > 0) {
          outcomes.bypassed++;
          await next();
          return;
        }
        let outcome: 'passed' | 'limited' = 'passed';
        try {
          await check(ctx.state, affordable);
          await next();
        } catch (error) {
          if (error instanceof Problem && error.code === 'rate_limited') outcome = 'limited';
          throw error;
        } finally {
          outcomes[outcome]++;
        }
      };
    },
    raiseTo: async (cost, state) => {
      const rest = Math.min(cost, points) - 1;
      if (rest > 0 && state.client.bypassSecondsLeft === 0) await check(state, rest);
    },
    usage: async (key) => {
      const state = await limiter.peek(key);
      return {
        limit: points,
        remaining: remaining(state),
        reset_seconds: Math.ceil(state.msBeforeNext / 1000),
      };
    },
  };
}

/** 429 until the window ends. */
export function rateLimited(state: RateLimitState, detail?: string): Problem {
  const headers = retryAfter(secondsLeft(state));
  return new Problem('rate_limited', detail === undefined ? { headers } : { headers, detail });
}

/** Seconds until the window ends, rounded up. */
function secondsLeft({ msBeforeNext }: RateLimitState): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}
