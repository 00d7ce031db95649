import Koa from 'koa';
import type { Config } from './config.js';
import { accounts, type OnAnswer } from './http/accounts.js';
import { clientAddressReader } from './http/client-address.js';
import { securityHeaders } from './http/browser-policy.js';
import { farewell } from './http/farewell.js';
import { problems, uncaught } from './http/problems.js';
import { identify, type RequestState } from './http/request-state.js';
import type { Logger } from './log.js';
import { createPageRouter, createRouter, refuseOtherMethods, type RouteDeps } from './routes/index.js';

export interface AppDeps extends RouteDeps {
  config: Config;
  log: Logger;
  /** Aborts when the server stops. */
  stopping: AbortSignal;
  onAnswer: OnAnswer | undefined;
}

/** The middleware in order, and the routes. Never listens. */
export function createApp(deps: AppDeps): Koa<RequestState> {
  const app = new Koa<RequestState>();
  const routers = [createRouter(deps), createPageRouter()];
  if (deps.onAnswer !== undefined || deps.log.isLevelEnabled('debug')) {
    app.use(accounts(routers, deps.onAnswer, deps.log));
  }
  app.use(farewell(deps.stopping));
  app.use(securityHeaders());
  app.use(problems(deps.log));
  app.use(identify(clientAddressReader(deps.config.trustedProxies), deps.tokens));
  for (const router of routers) app.use(router.routes());
  app.use(refuseOtherMethods);
  app.context.onerror = uncaught(deps.log);
  return app;
}
