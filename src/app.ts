import Koa, { type Middleware } from 'koa';
import { clientAddressReader } from './http/request/client-address.js';
import {
  RequestState,
  type Context,
  type Handler,
  type RequestServices,
} from './http/request/request-context.js';
import type { Logger } from './util/log.js';
import { createEndpoints, exactPaths, otherPaths, unhandled, type RouteDeps } from './routes/index.js';
import { toProblem } from './http/problems/error-to-problem.js';
import { Problem } from './http/problems/problem.js';
import { problemResponse, shared } from './http/response/response.js';
import { send } from './http/response/send.js';

/** Called for every response of the app. The route is that of the request's state, or `none`. */
type OnResponse = (route: string, status: number, seconds: number) => void;

export interface AppDeps extends RouteDeps {
  log: Logger;
  onResponse: OnResponse | undefined;
}

const NOT_FOUND = shared(problemResponse(new Problem('not_found')));

/** Creates the app: its middleware, in order, and its routes. Does not listen. */
export function createApp({ log, onResponse, ...deps }: AppDeps): Koa<RequestState> {
  const app = new Koa<RequestState>();
  const { config, tokens } = deps;
  const endpoints = createEndpoints(deps);
  if (onResponse !== undefined || log.isLevelEnabled('debug')) app.use(accessLog(onResponse, log));
  const services = { readAddress: clientAddressReader(config.trustedProxies), tokens };
  app.use(respond(exactPaths(endpoints), services, log));
  app.use(otherPaths(endpoints, config).routes());
  app.use(unhandled);
  app.on('error', (error: unknown, { headerSent, writable }: Context) => {
    const isLost = headerSent || !writable;
    log[isLost ? 'debug' : 'error']({ err: error }, 'a response could not be sent');
  });
  return app;
}

function accessLog(onResponse: OnResponse | undefined, log: Logger): Middleware<RequestState> {
  return async (ctx, next) => {
    const began = performance.now();
    await next();
    const ms = performance.now() - began;
    const { method, path, status, state } = ctx;
    // One label for all unknown paths: clients must not be able to create labels.
    onResponse?.(state.route ?? 'none', status, ms / 1000);
    // The query is not logged, because it may contain a secret.
    log.debug({ request_id: state.requestId, method, path, status, ms }, 'request completed');
  };
}

/**
 * Sends the response of the request's handler. Without a handler, sends the response that the next middleware leaves in
 * the state of the request, by default 404. An error becomes `application/problem+json` (RFC 9457), or what the clients
 * of the endpoint expect. An error that maps to no problem is a defect: it is logged in full, and the response is a 500
 * `internal` without details.
 */
export function respond(
  handlerOf: (ctx: Context) => Handler | undefined,
  services: RequestServices,
  log: Logger,
): Middleware<RequestState> {
  return async (ctx, next) => {
    const state = new RequestState(ctx.req, services, NOT_FOUND);
    ctx.state = state;
    // A target of another form, such as `*` or a URL, is for a proxy, and no path here.
    if (!ctx.url.startsWith('/')) ctx.url = `/${ctx.url}`;
    try {
      const handler = handlerOf(ctx);
      if (handler === undefined) await next();
      else state.response = await handler(ctx);
    } catch (error) {
      const problem = error instanceof Problem ? error : toProblem(error);
      if (problem.status >= 500) logProblem(log, problem, ctx);
      state.response = (state.errorResponse ?? problemResponse)(problem);
    }
    send(ctx, state.response);
  };
}

function logProblem(log: Logger, { code, cause, message }: Problem, { path, state }: Context): void {
  const level = code === 'internal' ? 'error' : 'debug';
  log[level]({ request_id: state.requestId, path, code, err: cause }, message);
}
