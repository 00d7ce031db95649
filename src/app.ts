import Koa from 'koa';
import type { Config } from './config/config.js';
import { accessLog, type OnResponse } from './http/middleware/access-log.js';
import { clientIpReader } from './http/middleware/client-address.js';
import { respond, uncaughtErrorHandler } from './http/middleware/errors.js';
import type { RequestState } from './http/request/request-context.js';
import type { Logger } from './util/log.js';
import { createRouter, exactRoutes, unmatched, type RouteDeps } from './routes/index.js';

export interface AppDeps extends RouteDeps {
  config: Config;
  log: Logger;
  /** Aborts when the server stops. */
  stopping: AbortSignal;
  onResponse: OnResponse | undefined;
}

/** Creates the app: its middleware, in order, and its routes. Does not listen. */
export function createApp({ config, log, stopping, onResponse, ...deps }: AppDeps): Koa<RequestState> {
  const app = new Koa<RequestState>();
  const router = createRouter({ config, ...deps });
  if (onResponse !== undefined || log.isLevelEnabled('debug')) app.use(accessLog(router, onResponse, log));
  const readAddress = clientIpReader(config.trustedProxies);
  app.use(respond(exactRoutes(router), { readAddress, tokens: deps.tokens, stopping }, log));
  app.use(router.routes());
  app.use(unmatched);
  app.context.onerror = uncaughtErrorHandler(log);
  return app;
}
