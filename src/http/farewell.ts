import type { Middleware } from 'koa';

/** While the server stops, tells its clients not to ask again on this connection: it will be closed. */
export function farewell(stopping: AbortSignal): Middleware {
  return async (ctx, next) => {
    await next();
    if (stopping.aborted) ctx.set('Connection', 'close');
  };
}
