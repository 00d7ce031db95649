import type Router from '@koa/router';
import type { Middleware } from 'koa';
import type { Logger } from '../log.js';
import type { RequestState } from './request-context.js';

/** Told of each answer: the path of its endpoint, its status, and how long it took in seconds. */
export type OnResponse = (route: string, status: number, seconds: number) => void;

/** What has no route is one route, so that nobody can make up routes without end. */
const UNMATCHED_ROUTE = 'none';

/** Gives an account of each answer: to whom it may concern, and to the log at level `debug`. */
export function accessLog(
  routers: readonly Router<RequestState>[],
  onResponse: OnResponse | undefined,
  log: Logger,
): Middleware<RequestState> {
  const routes = new Set(routers.flatMap(({ stack }) => stack.map(({ path }) => path)));
  return async (ctx, next) => {
    const began = performance.now();
    await next();
    const ms = performance.now() - began;
    onResponse?.(routes.has(ctx.path) ? ctx.path : UNMATCHED_ROUTE, ctx.status, ms / 1000);
    // Not the query: it may hold a secret.
    const { method, path, status } = ctx;
    log.debug({ request_id: ctx.state.requestId, method, path, status, ms }, 'answered');
  };
}
