import type { Middleware } from 'koa';
import { CORS_HEADERS, isOpen } from './cors.js';
import { PAGE_SECURITY_HEADERS, SECURITY_HEADERS } from './security-headers.js';
import type { RequestState } from './request-context.js';

/**
 * Adds the common headers to every response, and sends prepared responses with one `writeHead`: setting their
 * headers one by one takes as long as everything else that Koa does for them.
 * @param stopping aborts when the server stops: responses then close their connections.
 */
export function sendResponses(stopping: AbortSignal): Middleware<RequestState> {
  return async (ctx, next) => {
    await next();
    const { res, state } = ctx;
    const { prepared, rawHeaders } = state;
    const status = prepared?.status ?? ctx.status;
    // The response that a 304 refers to had them.
    if (status !== 304) {
      rawHeaders.push(...(state.isPage === true ? PAGE_SECURITY_HEADERS : SECURITY_HEADERS));
    }
    if (state.isPage !== true && isOpen(ctx.path)) rawHeaders.push(...CORS_HEADERS);
    if (stopping.aborted) rawHeaders.push('Connection', 'close');
    if (prepared !== undefined) {
      ctx.respond = false;
      res.writeHead(status, [...prepared.rawHeaders, ...rawHeaders]);
      res.end(prepared.body);
      return;
    }
    for (let i = 0; i < rawHeaders.length; i += 2) {
      res.setHeader(rawHeaders[i] as string, rawHeaders[i + 1] as string);
    }
  };
}
