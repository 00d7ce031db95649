import type Router from '@koa/router';
import type { Middleware } from 'koa';
import type { Logger } from '../../util/log.js';
import type { RequestState } from '../request/request-context.js';

/**
 * Called for every response of the app, but not if the HTTP server rejects a request. The route is a path of the router
 * (an OpenAPI template if it has a parameter), or `none`.
 */
export type OnResponse = (route: string, status: number, seconds: number) => void;

/** One label for all unknown paths: clients must not be able to create labels. */
const UNMATCHED_ROUTE = 'none';

/** Reports every response of the app to metrics and the debug log. */
export function accessLog(
  { stack: layers }: Router<RequestState>,
  onResponse: OnResponse | undefined,
  log: Logger,
): Middleware<RequestState> {
  const routes = new Set(layers.map(({ path }) => path));
  const patterns = layers.filter(({ path }) => path instanceof RegExp);
  const labelOf = (path: string) =>
    routes.has(path) ? path : (patterns.find(({ regexp }) => regexp.test(path))?.name ?? UNMATCHED_ROUTE);
  return async (ctx, next) => {
    const began = performance.now();
    await next();
    const ms = performance.now() - began;
    onResponse?.(labelOf(ctx.path), ctx.status, ms / 1000);
    // The query is not logged, because it may contain a secret.
    const { method, path, status } = ctx;
    log.debug({ request_id: ctx.state.requestId, method, path, status, ms }, 'request completed');
  };
}
