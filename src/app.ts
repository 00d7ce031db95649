import Koa, { type Middleware } from 'koa';
import { accessLog, type OnResponse } from './http/middleware/access-log.js';
import { clientIpReader } from './http/middleware/client-address.js';
import {
  RequestState,
  requestIdOf,
  type Context,
  type Handler,
  type RequestServices,
} from './http/request/request-context.js';
import type { Logger } from './util/log.js';
import { createRouter, exactRoutes, unmatched, type RouteDeps } from './routes/index.js';
import { toProblem } from './http/middleware/error-to-problem.js';
import { Problem } from './http/problems/problem.js';
import { problemResponse, sendProblem } from './http/response/problem-response.js';
import type { HttpResponse } from './http/response/response.js';
import { send } from './http/response/send.js';

export interface AppDeps extends RouteDeps {
  log: Logger;
  onResponse: OnResponse | undefined;
}

/** Creates the app: its middleware, in order, and its routes. Does not listen. */
export function createApp({ log, onResponse, ...deps }: AppDeps): Koa<RequestState> {
  const app = new Koa<RequestState>();
  const router = createRouter(deps);
  if (onResponse !== undefined || log.isLevelEnabled('debug')) app.use(accessLog(router, onResponse, log));
  const readAddress = clientIpReader(deps.config.trustedProxies);
  app.use(respond(exactRoutes(router), { readAddress, tokens: deps.tokens }, log));
  app.use(router.routes());
  app.use(unmatched);
  app.context.onerror = uncaughtErrorHandler(log);
  return app;
}

/**
 * Sends the response of the request's handler. If the request has no handler, sends the response of the next
 * middleware. An error becomes `application/problem+json` (RFC 9457). An error that maps to no problem is a defect: it
 * is logged in full, and the response is a 500 `internal` without details.
 */
export function respond(
  handlerOf: (ctx: Context) => Handler | undefined,
  services: RequestServices,
  log: Logger,
): Middleware<RequestState> {
  return async (ctx, next) => {
    ctx.state = new RequestState(ctx.req, services);
    // A target of another form, such as `*` or a URL, is for a proxy, and no path here.
    if (!ctx.url.startsWith('/')) ctx.url = `/${ctx.url}`;
    let response: HttpResponse;
    try {
      const handler = handlerOf(ctx);
      response = await (handler === undefined ? (next() as Promise<HttpResponse>) : handler(ctx));
    } catch (error) {
      const problem = toProblem(error);
      if (problem.status >= 500) logProblem(log, problem, ctx);
      response = problemResponse(problem);
    }
    send(ctx, response);
  };
}

function logProblem(log: Logger, { code, cause, message }: Problem, { path, state }: Context): void {
  const level = code === 'internal' ? 'error' : 'debug';
  log[level]({ request_id: state.requestId, path, code, err: cause }, message);
}

/**
 * Creates the handler of errors that no middleware has caught, such as errors while a response is sent. Koa's default
 * handler responds in plain text.
 */
export function uncaughtErrorHandler(log: Logger) {
  return function (this: Context, error: unknown): void {
    // Koa also calls this handler after each complete response, without an error.
    if (error === null || error === undefined) return;
    const { req, res, state } = this;
    if (res.headersSent || !this.writable) {
      log.debug({ err: error }, 'connection lost while sending the response');
      if (!res.writableEnded) res.destroy();
      return;
    }
    const requestId = (state as Partial<RequestState>).requestId ?? requestIdOf(req);
    log.error({ request_id: requestId, err: error }, 'unexpected error while sending the response');
    for (const name of res.getHeaderNames()) res.removeHeader(name);
    sendProblem(res, new Problem('internal'), requestId);
  };
}
