import cors from '@koa/cors';
import type { Middleware } from 'koa';
import type { RequestState } from './request-context.js';
import { REQUEST_ID } from './request-id.js';

/** Response headers that cross-origin scripts may read in addition to the default ones. */
const EXPOSED = [
  'ETag',
  'Link',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  REQUEST_ID,
  'X-Results-Truncated',
  'X-Snapshot',
  'X-Snapshot-Changes',
].join(',');

/** How long a browser may cache the response to a preflight request, in seconds. */
const PREFLIGHT_SECONDS = 86_400;

/** Lets scripts of any origin read a response. */
export const allowAnyOrigin: Middleware<RequestState> = (ctx, next) => {
  ctx.state.rawHeaders.push('Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', EXPOSED);
  return next();
};

/** Responds to preflight requests: scripts of any origin may send the bypass token. */
export const preflight: Middleware = cors({
  origin: '*',
  allowMethods: ['GET', 'HEAD'],
  allowHeaders: ['X-Bypass-Token'],
  maxAge: PREFLIGHT_SECONDS,
});
