import { finished, pipeline } from 'node:stream';
import type { Middleware } from 'koa';
import { policyHeaders } from './browser-policy.js';
import type { Context, RequestState } from '../request/request-context.js';
import type { HttpResponse } from './response.js';

/**
 * Sends a response with the headers of its request and those of all responses. Koa's own way, which sets headers one by
 * one, takes as long as everything else that Koa does for a cached response. So does merging records by spread syntax:
 * `Object.assign` takes a twentieth.
 */
export function send(ctx: Context, { status, headers, body, stream }: HttpResponse): void {
  const { method, path, state, req, res } = ctx;
  ctx.respond = false;
  const policy = policyHeaders(path, status, state.isPage);
  const all: Record<string, string> = Object.assign({}, policy, state.headers, headers);
  if (state.stopping.aborted) all['Connection'] = 'close';
  res.writeHead(status, all);
  if (stream === undefined || method === 'HEAD') {
    stream?.destroy();
    res.end(body);
    return;
  }
  // A response that waits for earlier ones of its connection does not notice that the connection has closed.
  const forget = finished(req.socket, () => stream.destroy());
  // The owner of the stream reports its errors; the client sees that the connection is reset.
  pipeline(stream, res, forget);
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
