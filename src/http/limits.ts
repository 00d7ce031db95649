import type { Redis } from 'ioredis';
import type { Middleware } from 'koa';
import { RateLimiterMemory, RateLimiterRedis, type RateLimiterAbstract } from 'rate-limiter-flexible';
import type { Logger } from '../log.js';
import { Problem } from '../problem.js';
import { JointCount, type Count } from './joint-count.js';
import type { Context, RequestState } from './request-state.js';
import { isSecret } from './secrets.js';

/** A number of requests in a fixed window of time, for each client. */
export interface Budget {
  /** Names the budget in the headers and in Redis. */
  name: string;
  points: number;
  windowSeconds: number;
}

/** Enough for a person who wants to know why; too little to be worth a flood. */
export const DEBUG_BUDGET: Budget = { name: 'debug', points: 30, windowSeconds: 60 };

/** Wrong secrets. */
const SECRETS_BUDGET: Budget = { name: 'secrets', points: 10, windowSeconds: 15 * 60 };

interface LimitsOptions {
  /** Keeps the counts for all replicas; without it this process counts for itself. */
  redis: Redis | undefined;
  /** Tells the counts of this registry from those of a sibling on the same Redis. */
  slug: string;
  log: Logger;
}

/** One budget's counts: to add to them, and to look at them. */
interface Limiter {
  count: JointCount;
  store: RateLimiterAbstract;
}

/** Makes limiters over one store. While Redis is away they count in this process. */
export class Limits {
  /** By budget: who asks twice for the same one shares its counts, also where this process keeps them. */
  readonly #limiters = new Map<string, Limiter>();

  constructor(private readonly options: LimitsOptions) {}

  /** Counts every request, and answers 429 beyond the budget; 0 points let everything pass. */
  perRequest(budget: Budget): Middleware<RequestState> {
    if (budget.points === 0) return (_ctx, next) => next();
    const limiter = this.#limiter(budget);
    return async (ctx, next) => {
      if (ctx.state.client.bypassSecondsLeft === 0) {
        // Undefined where no count could be had: an outage never blocks a client.
        const count = await this.#attempt(() => limiter.count.add(ctx.state.client.address.key));
        if (count !== undefined) {
          setBudgetHeaders(ctx, budget, count);
          if (count.consumed > budget.points) throw rateLimited(count, 'too many requests from this address');
        }
      }
      await next();
    };
  }

  /**
   * Makes the check of a secret. It throws 403 for a wrong, missing or unconfigured one, and 429 after too many wrong
   * ones from one address, whatever is sent then.
   */
  secretCheck(): (ctx: Context, given: string | undefined, configured: string | undefined) => Promise<void> {
    const limiter = this.#limiter(SECRETS_BUDGET);
    const lockedOut = (wrong: Pick<Count, 'msBeforeNext'>) =>
      rateLimited(wrong, 'too many wrong secrets from this address');
    return async (ctx, given, configured) => {
      const { key } = ctx.state.client.address;
      const limited = ctx.state.client.bypassSecondsLeft === 0;
      const wrong = limited ? await this.#attempt(() => limiter.store.get(key)) : undefined;
      if (wrong && wrong.consumedPoints >= SECRETS_BUDGET.points) throw lockedOut(wrong);
      if (isSecret(given, configured)) return;
      const counted = limited ? await this.#attempt(() => limiter.count.add(key)) : undefined;
      if (counted !== undefined && counted.consumed > SECRETS_BUDGET.points) throw lockedOut(counted);
      throw new Problem(403, 'forbidden', 'this needs the right secret');
    };
  }

  /** What is left of a budget, without using any of it. */
  usage(
    budget: Budget,
  ): (key: string) => Promise<{ limit: number; remaining: number; reset_seconds: number } | null> {
    if (budget.points === 0) return () => Promise.resolve(null);
    const limiter = this.#limiter(budget);
    return async (key) => {
      const used = await this.#attempt(() => limiter.store.get(key));
      return {
        limit: budget.points,
        remaining: Math.max(0, budget.points - (used?.consumedPoints ?? 0)),
        reset_seconds: used ? seconds(used) : 0,
      };
    };
  }

  #limiter(budget: Budget): Limiter {
    let limiter = this.#limiters.get(budget.name);
    if (limiter === undefined) {
      const store = this.#createStore(budget);
      limiter = { store, count: new JointCount(store) };
      this.#limiters.set(budget.name, limiter);
    }
    return limiter;
  }

  #createStore({ name, points, windowSeconds }: Budget): RateLimiterAbstract {
    const { redis, slug } = this.options;
    const rule = { points, duration: windowSeconds, keyPrefix: `${slug}:limit:${name}` };
    const memory = new RateLimiterMemory(rule);
    if (redis === undefined) return memory;
    return new RateLimiterRedis({
      ...rule,
      storeClient: redis,
      insuranceLimiter: memory,
      rejectIfRedisNotReady: true,
    });
  }

  async #attempt<T>(call: () => Promise<T>): Promise<T | undefined> {
    try {
      return await call();
    } catch (error) {
      this.options.log.error({ err: error }, 'a limit could not be counted; the request passes');
      return undefined;
    }
  }
}

function rateLimited(count: Pick<Count, 'msBeforeNext'>, detail: string): Problem {
  return new Problem(429, 'rate_limited', detail, { headers: { 'Retry-After': String(seconds(count)) } });
}

/** The fields of the IETF draft "RateLimit header fields for HTTP". */
function setBudgetHeaders(ctx: Context, { name, points, windowSeconds }: Budget, count: Count): void {
  ctx.set('RateLimit-Policy', `"${name}";q=${points};w=${windowSeconds}`);
  ctx.set('RateLimit', `"${name}";r=${Math.max(0, points - count.consumed)};t=${seconds(count)}`);
}

/** Until the window ends, rounded up. */
function seconds({ msBeforeNext }: Pick<Count, 'msBeforeNext'>): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}
