import Router, { type RouterContext } from '@koa/router';
import type { Middleware } from 'koa';
import type { Snapshot } from '../snapshot/snapshot.js';
import type { SnapshotExports } from '../search/export.js';
import type { Config } from '../config/config.js';
import type { ResponseCache } from '../read/response-cache.js';
import type { BypassTokens } from '../http/auth/bypass-token.js';
import type { RateLimiterDeps } from '../http/limits/failover-limiter.js';
import type { RateLimitPolicy } from '../http/limits/windows.js';
import { isOpen, preflight } from '../http/response/browser-policy.js';
import { snapshotReader, type SnapshotQuery, type SnapshotRead } from '../read/snapshot-read.js';
import { RateLimit, type Cost } from '../http/limits/rate-limit.js';
import { openApiDocument, type DescribedEndpoint, type Operation } from '../http/openapi/document.js';
import type { Context, Handler, RequestState } from '../http/request/request-context.js';
import { publicUrlReader } from '../http/request/public-url.js';
import { SecretAuth } from '../http/auth/secret-auth.js';
import { Problem } from '../http/problems/problem.js';
import type { Registry } from '../registry/registry.js';
import { browse, browseOperation } from './browse.js';
import { changes, changesOperation } from './changes.js';
import { changesFeed, changesFeedOperation } from './changes-feed.js';
import { debugIp, debugIpOperation, type ShownCosts } from './debug-ip.js';
import { exportOperation, EXPORTS_PER_WINDOW, exportSnapshot } from './export.js';
import { getBypass, getBypassOperation } from './get-bypass.js';
import { NAME_FILTER_COST } from './name-filter-params.js';
import { lookup, LOOKUP_COST, lookupOperation } from './lookup.js';
import { packageByName, packageOperation } from './packages.js';
import { similar, SIMILAR_COST, similarOperation } from './similar.js';
import { health, healthOperation } from './health.js';
import { ping, pingOperation } from './ping.js';
import { ready, readyOperation } from './ready.js';
import { openApi, openApiOperation, OVERVIEW } from './openapi.js';
import { staticFiles } from './static-files.js';
import { openSearch, openSearchOperation } from './opensearch.js';
import { robots } from './robots.js';
import { rebuildOperation, startRebuild } from './start-rebuild.js';
import { search, searchOperation } from './search.js';
import { suggest, suggestOperation } from './suggest.js';
import { stats, statsOperation } from './stats.js';

export interface RouteDeps {
  config: Config;
  registry: Registry;
  exports: SnapshotExports;
  /** For the limits of requests and of wrong secrets. */
  rateLimiter: RateLimiterDeps;
  tokens: BypassTokens;
  cache: ResponseCache;
}

/** Limit of `/debug-ip`: enough for a person, too low for a flood. */
const DEBUG_POLICY: RateLimitPolicy = { name: 'debug', points: 30, windowSeconds: 60 };

interface Endpoint extends DescribedEndpoint {
  handler: Handler;
  /** Rate limit of requests to the endpoint; none by default. */
  limit?: RateLimit;
  /** Points that a request costs, 1 by default. */
  cost?: Cost | undefined;
}

/** Registers all endpoints, with their rate limits and cross-origin access. */
export function createRouter(deps: RouteDeps): Router<RequestState> {
  const { config, registry, exports, rateLimiter, tokens, cache } = deps;
  const { catalog, snapshots, rebuilds } = registry;
  const { slug } = config.registry;
  const read = snapshotReader(catalog, cache);
  const reading = new RateLimit({ name: 'reading', ...config.rateLimit }, rateLimiter);
  const debugging = new RateLimit(DEBUG_POLICY, rateLimiter);
  // The endpoints with a secret count wrong secrets instead of requests.
  const secrets = new SecretAuth(rateLimiter);

  /** An endpoint whose responses are constant for a snapshot. */
  const ofSnapshot = <Query extends SnapshotQuery, Source extends Snapshot>(
    operation: Operation,
    steps: SnapshotRead<Query, Source>,
    cost?: Cost,
  ): Endpoint => ({ operation, handler: read(steps), limit: reading, cost });

  const endpoints: Record<string, Endpoint> = {
    '/ping': { operation: pingOperation, handler: ping },
    '/health': { operation: healthOperation, handler: health(snapshots) },
    '/ready': { operation: readyOperation, handler: ready(snapshots) },
    '/stats': { operation: statsOperation(slug), handler: stats(snapshots, slug), limit: reading },
    '/browse': ofSnapshot(browseOperation, browse(catalog)),
    '/search': ofSnapshot(searchOperation, search(catalog)),
    '/suggest': ofSnapshot(suggestOperation, suggest(catalog)),
    '/packages/{name}': ofSnapshot(packageOperation, packageByName(catalog)),
    '/lookup': ofSnapshot(lookupOperation, lookup(catalog), LOOKUP_COST),
    '/similar': ofSnapshot(similarOperation, similar(catalog), SIMILAR_COST),
    '/export': {
      operation: exportOperation,
      handler: exportSnapshot(catalog, exports, slug),
      limit: reading,
      cost: Math.ceil(config.rateLimit.points / EXPORTS_PER_WINDOW),
    },
    ...(config.changesRetention > 0 && {
      '/changes': ofSnapshot(changesOperation, changes(catalog), NAME_FILTER_COST),
      '/changes.atom': ofSnapshot(changesFeedOperation, changesFeed(catalog, slug), NAME_FILTER_COST),
    }),
    '/opensearch.xml': {
      operation: openSearchOperation,
      handler: openSearch(slug, publicUrlReader(config.publicUrl, config.trustedProxies)),
    },
    '/debug-ip': {
      operation: debugIpOperation,
      handler: debugIp(reading, () => costsOf(endpoints, reading)),
      limit: debugging,
    },
    '/get-bypass': {
      operation: getBypassOperation,
      handler: getBypass(secrets, tokens, config.bypassSecret),
    },
    '/rebuild': {
      operation: rebuildOperation,
      handler: startRebuild(secrets, rebuilds, snapshots, config.rebuild.secret),
    },
  };
  const document = openApiDocument(OVERVIEW, {
    ...endpoints,
    '/openapi.json': { operation: openApiOperation },
  });
  endpoints['/openapi.json'] = { operation: openApiOperation, handler: openApi(document) };

  // Paths are case-sensitive and allow no extra trailing slash.
  const router = new Router<RequestState>({ strict: true, sensitive: true });
  for (const [template, endpoint] of Object.entries(endpoints)) {
    const path = routePath(template);
    if (isOpen(template)) {
      router.options(template, path, (ctx, next) => preflight(ctx) ?? next());
      router.get(template, path, limited(endpoint));
    } else router.all(template, path, getOnly(endpoint.handler));
  }
  router.get('/robots.txt', robots(Object.keys(endpoints)));
  for (const [path, handler] of staticFiles(config.changesRetention > 0)) router.get(path, ofPage(handler));
  return router;
}

/**
 * The handlers of GET and HEAD on paths without a parameter. These requests bypass the router, which tests all paths
 * for each request. The router would add a third to the processor time of Koa.
 */
export function exactRoutes({ stack }: Router<RequestState>): (ctx: Context) => Handler | undefined {
  const reads = stack.filter(({ methods }) => methods.includes('GET'));
  const handlers = new Map(reads.map(({ path, stack: [handler] }) => [path, handler as Handler]));
  return ({ method, path }) => (method === 'GET' || method === 'HEAD' ? handlers.get(path) : undefined);
}

/** Counts requests, if the endpoint has a limit. */
function limited({ handler, limit, cost = 1 }: Endpoint): Handler {
  if (limit === undefined) return handler;
  return async (ctx) => {
    await limit.count(ctx, cost);
    return handler(ctx);
  };
}

/** Accepts only GET: a HEAD request must not issue a token or start a rebuild. */
function getOnly(handler: Handler): Handler {
  return (ctx) => {
    if (ctx.method === 'GET') return handler(ctx);
    throw new Problem('method_not_allowed', {
      detail: 'this path supports GET only',
      headers: { Allow: 'GET' },
    });
  };
}

/** Marks a response as part of the web page, which has no rate limit and is for this origin only. */
function ofPage(handler: Handler): Handler {
  return (ctx) => {
    ctx.state.isPage = true;
    return handler(ctx);
  };
}

/** The points that a request to each endpoint costs: 0 if `of` is not the limit of the endpoint. */
function costsOf(endpoints: Readonly<Record<string, Endpoint>>, of: RateLimit): ShownCosts {
  const costs = Object.entries(endpoints).map(([path, { limit, cost = 1 }]) => {
    if (limit !== of) return [path, { points: 0 }];
    return [path, typeof cost === 'number' ? { points: cost } : { points: 1, ...cost.shown }];
  });
  return Object.fromEntries(costs) as ShownCosts;
}

/** The router's pattern for an OpenAPI path. A parameter at the end matches the whole rest of the path. */
function routePath(template: string): string | RegExp {
  const [prefix = '', parameter] = template.split('{');
  return parameter === undefined ? template : new RegExp(`^${prefix}`);
}

/** Responds to requests that no route has taken. */
export const unmatched: Middleware<RequestState, RouterContext> = (ctx) => {
  if (ctx.matched !== undefined && ctx.matched.length > 0) throw new Problem('method_not_allowed');
  const response = preflight(ctx);
  if (response === undefined) throw new Problem('not_found');
  return response;
};
