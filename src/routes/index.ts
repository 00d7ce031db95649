import Router, { type RouterContext } from '@koa/router';
import type { Middleware } from 'koa';
import type { Snapshot } from '../snapshot/snapshot.js';
import type { SnapshotExports } from '../search/snapshot-exports.js';
import type { Config } from '../config/config.js';
import type { ResponseCache } from '../read/response-cache.js';
import type { BypassTokens } from '../http/auth/bypass-token.js';
import { CLOSED, preflight } from '../http/response/browser-policy.js';
import { snapshotReader, type SnapshotQuery, type SnapshotRead } from '../read/snapshot-read.js';
import { RateLimit, type Cost, type RateLimitDeps } from '../http/limits/rate-limit.js';
import { openApiDocument, type DescribedEndpoint, type Operation } from '../http/openapi/document.js';
import type { Context, Handler, RequestState } from '../http/request/request-context.js';
import { publicUrlReader } from '../http/request/public-url.js';
import { SecretAuth } from '../http/auth/secret-auth.js';
import { Problem } from '../http/problems/problem.js';
import type { Registry } from '../registry/registry.js';
import { browse, browseOperation } from './browse.js';
import { changes, changesOperation } from './changes.js';
import { cargo, cargoConfig } from './clients/cargo.js';
import { composer, composerConfig } from './clients/composer.js';
import { npm } from './clients/npm.js';
import { pipOperation, pipSearch } from './clients/pip.js';
import { changesFeed, changesFeedOperation } from './changes-feed.js';
import { debugIp, debugIpOperation, type ShownCosts } from './debug-ip.js';
import { exportOperation, EXPORTS_PER_WINDOW, exportSnapshot } from './export.js';
import { getBypass, getBypassOperation } from './get-bypass.js';
import { NAME_FILTER_COST } from './name-filter-params.js';
import { lookup, lookupCost, lookupOperation } from './lookup.js';
import { packageByName, packageOperation } from './packages.js';
import { similar, SIMILAR_COST, similarOperation } from './similar.js';
import { health, healthOperation } from './health.js';
import { ping, pingOperation } from './ping.js';
import { ready, readyOperation } from './ready.js';
import { openApi, openApiOperation, OVERVIEW } from './openapi.js';
import { robots, staticFiles } from './static-files.js';
import { openSearch, openSearchOperation, shortNameOf } from './opensearch.js';
import { rebuildOperation, startRebuild } from './rebuild.js';
import { search, searchOperation } from './search.js';
import { suggest, suggestOperation } from './suggest.js';
import { stats, statsOperation } from './stats.js';

export interface RouteDeps {
  config: Config;
  registry: Registry;
  exports: SnapshotExports;
  /** For the limits of requests and of wrong secrets. */
  rateLimits: RateLimitDeps;
  tokens: BypassTokens;
  cache: ResponseCache;
}

/** Limit of `/debug-ip`: enough for a person, too low for a flood. */
const DEBUG_POLICY = { name: 'debug', points: 30, windowSeconds: 60 };

interface Endpoint extends DescribedEndpoint {
  handler: Handler;
  limit?: RateLimit;
  /** Points that a request costs, 1 by default. */
  cost?: Cost | undefined;
}

/** All endpoints, by their path in OpenAPI. */
export type Endpoints = Readonly<Record<string, Endpoint>>;

export function createEndpoints(deps: RouteDeps): Endpoints {
  const { config, registry, exports, rateLimits, tokens, cache } = deps;
  const { catalog, snapshots, rebuilds } = registry;
  const { slug } = config.registry;
  const read = snapshotReader(catalog, cache);
  const reading = new RateLimit({ name: 'reading', ...config.rateLimit }, rateLimits);
  const debugging = new RateLimit(DEBUG_POLICY, rateLimits);
  // The endpoints with a secret count wrong secrets instead of requests.
  const secrets = new SecretAuth(rateLimits);

  /** An endpoint whose responses are constant for a snapshot. */
  const ofSnapshot = <Query extends SnapshotQuery, Source extends Snapshot>(
    operation: Operation,
    steps: SnapshotRead<Query, Source>,
    cost?: Cost,
  ): Endpoint => ({ operation, handler: read(steps), limit: reading, cost });

  const publicUrlOf = publicUrlReader(config.publicUrl, config.trustedProxies);
  const endpoints: Record<string, Endpoint> = {
    '/ping': { operation: pingOperation, handler: ping },
    '/health': { operation: healthOperation, handler: health(snapshots) },
    '/ready': { operation: readyOperation, handler: ready(snapshots) },
    '/stats': { operation: statsOperation(slug), handler: stats(snapshots, slug), limit: reading },
    '/browse': ofSnapshot(browseOperation, browse(catalog)),
    '/search': ofSnapshot(searchOperation, search(catalog)),
    '/suggest': ofSnapshot(suggestOperation, suggest(catalog)),
    '/packages/{name}': ofSnapshot(packageOperation, packageByName(catalog)),
    '/lookup': ofSnapshot(lookupOperation, lookup(catalog, config.purlType), lookupCost(config.purlType)),
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
    '/-/v1/search': ofSnapshot(npm.operation, npm.steps(catalog)),
    '/config.json': cargoConfig(publicUrlOf),
    '/api/v1/crates': ofSnapshot(cargo.operation, cargo.steps(catalog)),
    '/pypi': { operation: pipOperation, handler: pipSearch(catalog), limit: reading },
    '/packages.json': composerConfig(publicUrlOf),
    '/search.json': ofSnapshot(composer.operation, composer.steps(catalog)),
    '/opensearch.xml': { operation: openSearchOperation, handler: openSearch(slug, publicUrlOf) },
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
  return endpoints;
}

/** Finds handlers without a parameter by one table look-up. The router would add a third to Koa's processor time. */
export function exactPaths(endpoints: Endpoints): (ctx: Context) => Handler | undefined {
  const exact = Object.entries(endpoints).filter(([path]) => !path.includes('{'));
  const handlers = new Map(
    exact.map(([path, endpoint]) => [path, { handler: limited(endpoint), only: CLOSED.get(path) }]),
  );
  return ({ method, path, state }) => {
    const found = handlers.get(path);
    if (found === undefined) return undefined;
    const { handler, only } = found;
    state.route = path;
    // A HEAD request must not issue a token or start a rebuild.
    return method === (only ?? 'GET') || (method === 'HEAD' && only === undefined) ? handler : undefined;
  };
}

/** Routes all other paths: of endpoints with a parameter, which is the rest of the path, and of the page's files. */
export function otherPaths(
  endpoints: Endpoints,
  { changesRetention, registry }: Config,
): Router<RequestState> {
  const router = new Router<RequestState>({ strict: true, sensitive: true });
  const add = (route: string, path: string | RegExp, handler: Handler) =>
    router.get(route, path, async (ctx) => {
      ctx.state.route = route;
      ctx.state.response = await handler(ctx);
    });
  for (const [path, endpoint] of Object.entries(endpoints)) {
    const [prefix = '', parameter] = path.split('{');
    if (parameter !== undefined) add(path, new RegExp(`^${prefix}`), limited(endpoint));
  }
  add('/robots.txt', '/robots.txt', robots(Object.keys(endpoints)));
  for (const [path, handler] of staticFiles(changesRetention > 0, shortNameOf(registry.slug)))
    add(path, path, ofPage(handler));
  return router;
}

/** Responds to requests that have no handler: preflight requests, and other methods than GET and HEAD. */
export const unhandled: Middleware<RequestState, RouterContext> = (ctx) => {
  const { state, path, matched } = ctx;
  state.route ??= matched?.[0]?.name;
  const only = CLOSED.get(path);
  if (only !== undefined) {
    const detail = `this path supports ${only} only`;
    throw new Problem('method_not_allowed', { detail, headers: { Allow: only } });
  }
  const response = preflight(ctx);
  if (response !== undefined) state.response = response;
  else if (state.route !== undefined) throw new Problem('method_not_allowed');
};

function limited({ operation, handler, limit, cost = 1 }: Endpoint): Handler {
  const { errors } = operation;
  if ((limit === undefined || limit.isOff) && errors === undefined) return handler;
  return async (ctx) => {
    ctx.state.errorResponse = errors?.respond;
    if (limit?.isOff === false) await limit.count(ctx, cost);
    return await handler(ctx);
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
function costsOf(endpoints: Endpoints, of: RateLimit): ShownCosts {
  const costs = Object.entries(endpoints).map(([path, { limit, cost = 1 }]) => {
    if (limit !== of) return [path, { points: 0 }];
    return [path, typeof cost === 'number' ? { points: cost } : { points: 1, ...cost.shown }];
  });
  return Object.fromEntries(costs) as ShownCosts;
}
