import { REQUEST_ID, type Context } from './request-context.js';
import type { HttpResponse, ResponseHeaders } from './response.js';

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

/** Let scripts of any origin read a response. */
export const CORS_HEADERS: ResponseHeaders = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': EXPOSED,
};

/** Headers of the response to a preflight request, which a browser may cache for a day. */
const PREFLIGHT_HEADERS: ResponseHeaders = {
  'Access-Control-Allow-Methods': 'GET,HEAD',
  'Access-Control-Max-Age': '86400',
};

/** The endpoints with a secret. */
const CLOSED = new Set(['/get-bypass', '/rebuild']);

/** Whether scripts of any origin may read the responses at a path, those of errors included. */
export function isOpen(path: string): boolean {
  return !CLOSED.has(path);
}

/**
 * Responds to preflight requests: scripts of any origin may send any header, such as those that tracers add to every
 * request. No header gives a page more than any other client has: without credentials, there are no cookies.
 */
export function preflight(ctx: Context): HttpResponse | undefined {
  // Caches keep errors of unknown paths and preflight responses apart by origin.
  ctx.state.headers['Vary'] = 'Origin';
  if (ctx.method !== 'OPTIONS' || !ctx.get('Access-Control-Request-Method')) return undefined;
  const wanted = ctx.get('Access-Control-Request-Headers');
  return {
    status: 204,
    headers: { ...PREFLIGHT_HEADERS, ...(wanted && { 'Access-Control-Allow-Headers': wanted }) },
  };
}
