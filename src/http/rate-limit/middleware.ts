import type { Middleware } from 'koa';
import { Problem, retryAfter } from '../problem.js';
import { BatchedLimiter } from './batched-limiter.js';
import {
  FailoverLimiter,
  type RateLimitPolicy,
  type RateLimitState,
  type RateLimiterDeps,
} from './failover-limiter.js';
import type { RequestState } from '../request-context.js';

/** What is left of a budget. */
export interface Usage {
  limit: number;
  remaining: number;
  reset_seconds: number;
}

/** A limit on the requests of each client. */
export interface RateLimit {
  /** Counts the request, and answers 429 beyond the budget; a valid bypass token is not counted. */
  enforce: Middleware<RequestState>;
  /** What is left for a client, without using any of it; null where there is no limit. */
  usage(key: string): Promise<Usage | null>;
}

/** Makes the limit of one budget; 0 points let everything pass. */
export function createRateLimit(budget: RateLimitPolicy, store: RateLimiterDeps): RateLimit {
  if (budget.points === 0) return { enforce: (_ctx, next) => next(), usage: () => Promise.resolve(null) };
  const limiter = new FailoverLimiter(budget, store);
  const counts = new BatchedLimiter(limiter);
  const { outcomes } = limiter.stats;
  const policy = `"${budget.name}";q=${budget.points};w=${budget.windowSeconds}`;
  return {
    enforce: async (ctx, next) => {
      if (ctx.state.client.bypassSecondsLeft > 0) outcomes.bypassed++;
      else {
        const count = await counts.add(ctx.state.client.address.key);
        // The fields of the IETF draft "RateLimit header fields for HTTP".
        const remaining = Math.max(0, budget.points - count.consumed);
        ctx.state.rawHeaders.push(
          'RateLimit-Policy',
          policy,
          'RateLimit',
          `"${budget.name}";r=${remaining};t=${seconds(count)}`,
        );
        if (count.consumed > budget.points) {
          outcomes.limited++;
          throw rateLimited(count, 'too many requests from this address');
        }
        outcomes.passed++;
      }
      await next();
    },
    usage: async (key) => {
      const used = await limiter.peek(key);
      return {
        limit: budget.points,
        remaining: Math.max(0, budget.points - used.consumed),
        reset_seconds: Math.ceil(used.msBeforeNext / 1000),
      };
    },
  };
}

/** 429 until the window ends. */
export function rateLimited(count: RateLimitState, detail: string): Problem {
  return new Problem('rate_limited', { detail, headers: retryAfter(seconds(count)) });
}

/** Until the window ends, rounded up. */
function seconds({ msBeforeNext }: RateLimitState): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}
