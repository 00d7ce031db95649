import { finished, pipeline } from 'node:stream';
import { policyFields } from './browser-policy.js';
import type { Context } from '../request/request-context.js';
import { fieldsOf, type HttpResponse } from './response.js';

/**
 * A batch of responses is sent when it is full, or at the end of this iteration of the event loop. Batches take less
 * processor time, and speed up the slowest responses under load. All headers of a response are written in one call. Koa
 * sets them one by one, which takes half of Koa's time for a cached response.
 */
export function send(ctx: Context, response: HttpResponse): void {
  ctx.respond = false;
  ctx.res.statusCode = response.status;
  if (batch.length === 0) setImmediate(writeBatch);
  batch.push({ ctx, response });
  if (batch.length === MAX_BATCH) writeBatch();
}

/** A larger batch would delay responses without lowering their cost. */
const MAX_BATCH = 8;

let batch: { ctx: Context; response: HttpResponse }[] = [];

function writeBatch(): void {
  const responses = batch;
  batch = [];
  for (const { ctx, response } of responses) {
    try {
      write(ctx, response);
    } catch (error) {
      ctx.onerror(error as Error);
    }
  }
}

function write(
  { method, path, state, req, res }: Context,
  { status, headers, fields: own = fieldsOf(headers), body, stream }: HttpResponse,
): void {
  // While the server stops, `http/server` adds `Connection: close`.
  res.writeHead(status, policyFields(path, status, state.isPage).concat(state.headerFields, own));
  if (stream === undefined || method === 'HEAD') {
    stream?.destroy();
    res.end(body);
    return;
  }
  // A response that waits for earlier responses of its connection does not notice that the connection was closed.
  const forget = finished(req.socket, () => stream.destroy());
  // HTTP/1.0 clients recognise a truncated response only by a reset. The owner of the stream reports its errors.
  const cutOff = () => req.socket.resetAndDestroy();
  stream.once('error', cutOff);
  res.once('timeout', cutOff);
  pipeline(stream, res, forget);
}
