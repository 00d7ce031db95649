import type { Middleware } from 'koa';
import type { RequestState } from './request-context.js';
import type { ResponseHeaders } from './response.js';

/**
 * Security headers of every response. Not `Strict-Transport-Security`: whether a host and its siblings need TLS is
 * known to the proxy that terminates it.
 */
const COMMON = {
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** For responses that are not part of the web page: browsers must not load or frame anything. */
export const SECURITY_HEADERS: ResponseHeaders = {
  'Content-Security-Policy': "default-src 'none';frame-ancestors 'none'",
  ...COMMON,
};

/** For the web page: it loads only from its own origin, and has no inline code and no text parsed as HTML. */
export const PAGE_SECURITY_HEADERS: ResponseHeaders = {
  'Content-Security-Policy':
    "default-src 'none';script-src 'self';style-src 'self';img-src 'self';connect-src 'self';form-action 'self';" +
    "base-uri 'none';frame-ancestors 'none';require-trusted-types-for 'script';trusted-types 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  ...COMMON,
};

/** Marks a response as part of the web page. */
export const markAsPage: Middleware<RequestState> = (ctx, next) => {
  ctx.state.isPage = true;
  return next();
};

/**
 * Keeps responses to requests with a secret, errors included, out of caches and out of pages of other sites.
 */
export const confidential: Middleware<RequestState> = (ctx, next) => {
  Object.assign(ctx.state.headers, {
    'Cache-Control': 'no-store',
    'Cross-Origin-Resource-Policy': 'same-origin',
  });
  return next();
};
