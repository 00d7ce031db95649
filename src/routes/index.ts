import Router, { type RouterContext } from '@koa/router';
import type { Middleware } from 'koa';
import type { Catalog } from '../catalog/catalog.js';
import type { Generations } from '../catalog/generation.js';
import type { Config } from '../config.js';
import type { AnswerCache } from '../http/answer-cache.js';
import type { BypassTokens } from '../http/bypass-token.js';
import type { Budget, LimiterStore } from '../http/insured-limiter.js';
import { requestLimit } from '../http/limits.js';
import type { RequestState } from '../http/request-state.js';
import { SecretCheck } from '../http/secret-check.js';
import { Problem } from '../problem.js';
import type { Rebuilds } from '../rebuild/rebuilds.js';
import { browse } from './browse.js';
import { debugIp } from './debug-ip.js';
import { getBypass } from './get-bypass.js';
import type { Handler } from './handler.js';
import { health } from './health.js';
import { ping } from './ping.js';
import { startRebuild } from './rebuild.js';
import { search } from './search.js';
import { stats } from './stats.js';

export interface RouteDeps {
  config: Pick<Config, 'registry' | 'rebuild' | 'bypassSecret' | 'rateLimit'>;
  catalog: Catalog;
  generations: Generations;
  rebuilds: Rebuilds;
  /** Where requests and wrong secrets are counted. */
  counts: LimiterStore;
  tokens: BypassTokens;
  cache: AnswerCache;
}

/** Of `/debug-ip`: enough for a person who wants to know why; too little to be worth a flood. */
const DEBUG_BUDGET: Budget = { name: 'debug', points: 30, windowSeconds: 60 };

/** All endpoints, each with its limit: the one place that decides what is limited and how. */
export function createRouter(deps: RouteDeps): Router<RequestState> {
  const { config, catalog, generations, rebuilds, counts, tokens, cache } = deps;
  const reading = requestLimit({ name: 'reading', ...config.rateLimit }, counts);
  const debugging = requestLimit(DEBUG_BUDGET, counts);
  const secrets = new SecretCheck(counts);
  const free: Middleware<RequestState> = (_ctx, next) => next();

  const endpoints: [path: string, limit: Middleware<RequestState>, handler: Handler][] = [
    ['/ping', free, ping()],
    ['/health', free, health(generations)],
    ['/stats', reading.count, stats(catalog, config.registry.slug)],
    ['/browse', reading.count, browse(catalog, cache)],
    ['/search', reading.count, search(catalog, cache)],
    ['/debug-ip', debugging.count, debugIp(reading)],
    // These two count wrong secrets instead of requests.
    ['/get-bypass', free, getBypass(secrets, tokens, config.bypassSecret)],
    ['/rebuild', free, startRebuild(secrets, rebuilds, generations, config.rebuild.secret)],
  ];

  const router = new Router<RequestState>();
  for (const [path, limit, handler] of endpoints) router.get(path, limit, handler);
  return router;
}

/** Comes after the router: answers 405 to what has found its path there, and no way for its method. */
export const refuseOtherMethods: Middleware<RequestState, RouterContext> = (ctx, next) => {
  if (ctx.matched === undefined || ctx.matched.length === 0) return next();
  throw new Problem(405, 'method_not_allowed', 'this path answers GET and HEAD only', {
    headers: { Allow: 'GET, HEAD' },
  });
};
