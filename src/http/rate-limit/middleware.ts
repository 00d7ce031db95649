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
  /** Counts the request, and responds 429 if the client is over the limit. A valid bypass token is not counted. */
  enforce: Middleware<RequestState>;
  /** The state of a client; uses no points. Null if there is no limit. */
  usage(key: string): Promise<Usage | null>;
}

/** The rate limit of a policy; 0 points mean no limit. */
export function createRateLimit(policy: RateLimitPolicy, deps: RateLimiterDeps): RateLimit {
  const { name, points, windowSeconds } = policy;
  if (points === 0) return { enforce: (_ctx, next) => next(), usage: () => Promise.resolve(null) };
  const limiter = new FailoverLimiter(policy, deps);
  const batched = new BatchedLimiter(limiter);
  const { outcomes } = limiter.stats;
  const policyHeader = `"${name}";q=${points};w=${windowSeconds}`;
  const remaining = ({ consumed }: RateLimitState) => Math.max(0, points - consumed);
  const check = async ({ client, rawHeaders }: RequestState) => {
    const state = await batched.consume(client.address.key);
    // The fields of the IETF draft "RateLimit header fields for HTTP".
    rawHeaders.push('RateLimit-Policy', policyHeader);
    rawHeaders.push('RateLimit', `"${name}";r=${remaining(state)};t=${secondsLeft(state)}`);
    if (state.consumed > points) {
      outcomes.limited++;
      throw rateLimited(state);
    }
    outcomes.passed++;
  };
  return {
    enforce: async (ctx, next) => {
      if (ctx.state.client.bypassSecondsLeft > 0) outcomes.bypassed++;
      else await check(ctx.state);
      await next();
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

/** Until the window ends, rounded up. */
function secondsLeft({ msBeforeNext }: RateLimitState): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}
