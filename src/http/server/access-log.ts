import type { Middleware } from 'koa';
import type { Logger } from '../../util/log.js';
import type { RequestState } from '../request/request-context.js';

/** Called for every response of the app. The route is that of the request's state, or `none`. */
export type OnResponse = (route: string, status: number, seconds: number) => void;

/** One label for all unknown paths: clients must not be able to create labels. */
const UNKNOWN_ROUTE = 'none';

export function accessLog(onResponse: OnResponse | undefined, log: Logger): Middleware<RequestState> {
  return async (ctx, next) => {
    const began = performance.now();
    await next();
    const ms = performance.now() - began;
    const { method, path, status, state } = ctx;
    onResponse?.(state.route ?? UNKNOWN_ROUTE, status, ms / 1000);
    // The query is not logged, because it may contain a secret.
    log.debug({ request_id: state.requestId, method, path, status, ms }, 'request completed');
  };
}
