import { finished, pipeline } from 'node:stream';
import { policyHeaders } from './browser-policy.js';
import type { Context } from '../request/request-context.js';
import type { HttpResponse, ResponseHeaders } from './response.js';

/**
 * Sends a response with the headers of its request and those of all responses, after all requests that have arrived were
 * read: responses in a batch take 0.7 of the processor time. Koa's own way, which sets headers one by one, takes as long as
 * everything else that Koa does for a cached response.
 */
export function send(ctx: Context, response: HttpResponse): void {
  ctx.respond = false;
  ctx.res.statusCode = response.status;
  setImmediate(() => {
    try {
      write(ctx, response);
    } catch (error) {
      ctx.onerror(error as Error);
    }
  });
}

function write(
  { method, path, state, req, res }: Context,
  { status, headers, body, stream }: HttpResponse,
): void {
  const fields: string[] = [];
  // Several times as fast as one record of all headers.
  const add = (record: ResponseHeaders) => {
    for (const name in record)
      if (record === headers || !(name in headers)) fields.push(name, record[name] as string);
  };
  add(policyHeaders(path, status, state.isPage));
  add(state.headers);
  add(headers);
  if (state.isStopping) fields.push('Connection', 'close');
  res.writeHead(status, fields);
  if (stream === undefined || method === 'HEAD') {
    stream?.destroy();
    res.end(body);
    return;
  }
  // A response that waits for earlier ones of its connection does not notice that the connection has closed.
  const forget = finished(req.socket, () => stream.destroy());
  // The owner of the stream reports its errors. To HTTP/1.0, only a reset differs from the end of a response.
  stream.once('error', () => req.socket.resetAndDestroy());
  pipeline(stream, res, forget);
}
