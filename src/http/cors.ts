import cors from '@koa/cors';
import type { Middleware } from 'koa';
import type { RawHeaders } from './prepared-response.js';
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

/** Let scripts of any origin read a response. */
export const CORS_HEADERS: RawHeaders = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  EXPOSED,
];

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
export const preflight: Middleware = cors({
  origin: '*',
  allowMethods: ['GET', 'HEAD'],
  maxAge: PREFLIGHT_SECONDS,
});
