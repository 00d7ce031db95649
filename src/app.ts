import Koa from 'koa';
import type { Config } from './config/config.js';
import { accessLog, type OnResponse } from './http/request/access-log.js';
import { clientIpReader } from './http/request/client-ip.js';
import { preflight } from './http/response/browser-policy.js';
import { notFound, errorHandler, uncaughtErrorHandler } from './http/response/error-handler.js';
import { requestContext, type RequestState } from './http/request/request-context.js';
import { respond } from './http/response/send.js';
import type { Logger } from './log.js';
import { createStaticRouter, createRouter, methodNotAllowed, type RouteDeps } from './routes/index.js';

export interface AppDeps extends RouteDeps {
  config: Config;
  log: Logger;
  /** Aborts when the server stops. */
  stopping: AbortSignal;
  onResponse: OnResponse | undefined;
}

/** Creates the app: its middleware, in order, and its routes. Does not listen. */
export function createApp(deps: AppDeps): Koa<RequestState> {
  const app = new Koa<RequestState>();
  const routers = [createRouter(deps), createStaticRouter(deps.config)];
  if (deps.onResponse !== undefined || deps.log.isLevelEnabled('debug')) {
    app.use(accessLog(routers, deps.onResponse, deps.log));
  }
  app.use(requestContext(clientIpReader(deps.config.trustedProxies), deps.tokens, deps.stopping));
  app.use(errorHandler(deps.log));
  for (const router of routers) app.use(router.routes());
  app.use(methodNotAllowed);
  // After the routes, so that only unknown paths and methods pay for it.
  app.use(respond(preflight));
  app.use(notFound);
  app.context.onerror = uncaughtErrorHandler(deps.log);
  return app;
}
