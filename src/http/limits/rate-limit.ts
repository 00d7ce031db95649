import type { Middleware } from 'koa';
import { Problem, retryAfter } from '../response/problem.js';
import type { RequestState } from '../request/request-context.js';
import { FailoverLimiter, type RateLimiterDeps } from './failover-limiter.js';
import type { RateLimitPolicy, RateLimitState } from './fixed-windows.js';

/** The rate limit of a client, as `/debug-ip` shows it. */
export interface Usage {
  limit: number;
  remaining: number;
  reset_seconds: number;
}

/** Points of a request. */
export type Cost = number | CostByNames;

/** A request costs one point for every `perNames` names in it, rounded up. */
export interface CostByNames {
  perNames: number;
  of: (querystring: string) => number;
}

/** A limit on the requests of each client. */
export interface RateLimit {
  /**
   * Counts each request, and responds 429 without counting it if its points do not fit into the client's limit.
   * Requests with a valid bypass token are free.
   * @param cost 1 by default; never more than the whole limit.
   */
  enforce(cost?: Cost): Middleware<RequestState>;
  /** The state of a client; uses no points. Null if there is no limit. */
  usage(client: string): Promise<Usage | null>;
}

const UNLIMITED: RateLimit = {
  enforce: () => (_ctx, next) => next(),
  usage: () => Promise.resolve(null),
};

/** The rate limit of a policy; 0 points mean no limit. */
export function createRateLimit(policy: RateLimitPolicy, deps: RateLimiterDeps): RateLimit {
  const { points: limit } = policy;
  if (limit === 0) return UNLIMITED;
  const limiter = new FailoverLimiter(policy, deps);
  const { outcomes } = limiter.stats;
  const check = async (state: RequestState, points: number) => {
    const cost = Math.min(points, limit);
    const window = await limiter.take(state.client.address.key, cost);
    addHeaders(state, policy, window);
    outcomes[window.allowed ? 'passed' : 'limited']++;
    if (!window.allowed) throw rateLimited(window, balance(cost, remaining(policy, window), window));
  };
  return {
    enforce: (cost = 1) => {
      const pointsOf = typeof cost === 'number' ? () => cost : cost.of;
      return async ({ state, querystring }, next) => {
        if (state.client.bypassSecondsLeft > 0) outcomes.bypassed++;
        else await check(state, pointsOf(querystring));
        await next();
      };
    },
    usage: async (client) => {
      const window = await limiter.take(client, 0);
      return { limit, remaining: remaining(policy, window), reset_seconds: secondsLeft(window) };
    },
  };
}

/** Adds the headers of the IETF draft "RateLimit header fields for HTTP". */
function addHeaders({ headers }: RequestState, policy: RateLimitPolicy, window: RateLimitState): void {
  const { name, points, windowSeconds } = policy;
  headers['RateLimit-Policy'] = `"${name}";q=${points};w=${windowSeconds}`;
  headers['RateLimit'] = `"${name}";r=${remaining(policy, window)};t=${secondsLeft(window)}`;
}

/** 429 until the window ends. */
export function rateLimited(window: RateLimitState, detail: string): Problem {
  return new Problem('rate_limited', { headers: retryAfter(secondsLeft(window)), detail });
}

/** Why a request is rejected: "this request costs 10 points, 2 left until 2026-01-02T03:04:05Z". */
function balance(cost: number, left: number, window: RateLimitState): string {
  const end = new Date(Date.now() + secondsLeft(window) * 1000).toISOString().replace(/\.\d+/, '');
  return `this request costs ${cost} ${cost === 1 ? 'point' : 'points'}, ${left} left until ${end}`;
}

/** Points left in the window; `used` exceeds the limit only if other replicas have a higher one. */
function remaining({ points }: RateLimitPolicy, { used }: RateLimitState): number {
  return Math.max(0, points - used);
}

/** Seconds until the window ends, rounded up. */
function secondsLeft({ msLeft }: RateLimitState): number {
  return Math.max(1, Math.ceil(msLeft / 1000));
}
