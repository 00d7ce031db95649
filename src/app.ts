import Koa from 'koa';
import type { Config } from './config.js';
import { accounts, type OnAnswer } from './http/accounts.js';
import { clientAddressReader } from './http/client-address.js';
import { notFound, problems, uncaught } from './http/problems.js';
import { identify, type RequestState } from './http/request-state.js';
import { sendResponses } from './http/send-responses.js';
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
  app.use(identify(clientAddressReader(deps.config.trustedProxies), deps.tokens));
  app.use(sendResponses(deps.stopping));
  app.use(problems(deps.log));
  for (const router of routers) app.use(router.routes());
  app.use(refuseOtherMethods);
  app.use(notFound);
  app.context.onerror = uncaught(deps.log);
  return app;
}
