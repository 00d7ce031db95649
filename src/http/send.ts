import type { Middleware } from 'koa';
import { CORS_HEADERS, isOpen } from './cors.js';
import { PAGE_SECURITY_HEADERS, SECURITY_HEADERS } from './security-headers.js';
import type { Context, RequestState } from './request-context.js';
import type { HttpResponse } from './response.js';

/**
 * Sends a response with the headers of its request and those of all responses. Koa's own way, which sets headers one by
 * one, takes as long as everything else that Koa does for a cached response.
 */
export function send(ctx: Context, { status, headers, body }: HttpResponse): void {
  const { state, res } = ctx;
  const isPage = state.isPage === true;
  ctx.respond = false;
  res.writeHead(status, {
    ...state.headers,
    // The response that a 304 refers to had them.
    ...(status === 304 ? undefined : isPage ? PAGE_SECURITY_HEADERS : SECURITY_HEADERS),
    ...(isPage || !isOpen(ctx.path) ? undefined : CORS_HEADERS),
    ...headers,
    ...(body === undefined ? undefined : { 'Content-Length': body.length }),
    ...(state.stopping.aborted ? { Connection: 'close' } : undefined),
  });
  res.end(body);
}

/** Sends what `handle` returns; if that is undefined, the next middleware responds. */
export function respond(
  handle: (ctx: Context) => HttpResponse | undefined | Promise<HttpResponse>,
): Middleware<RequestState> {
  return async (ctx, next) => {
    const response = await handle(ctx);
    if (response === undefined) await next();
    else send(ctx, response);
  };
}
