import type { Context } from '../request/request-context.js';
import { fieldsOf, type HeaderFields, type HttpResponse, type ResponseHeaders } from './response.js';

/**
 * Security headers of every response except 304. The proxy that terminates TLS must add `Strict-Transport-Security`:
 * only the proxy knows whether a host and its subdomains use only TLS.
 */
const SECURITY = {
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** For responses that are not part of the web page: they load no resources, and no page may frame them. */
const NO_CONTENT_SECURITY = {
  'Content-Security-Policy': "default-src 'none';frame-ancestors 'none'",
  ...SECURITY,
};

/** Pages load resources only from their own origin, and have no inline code. */
const OWN_ORIGIN =
  "default-src 'none';script-src 'self';img-src 'self';connect-src 'self';form-action 'self';base-uri 'none';frame-ancestors 'none'";

/** For the web page, which has no inline styles and never parses text as HTML. */
const PAGE: ResponseHeaders = {
  'Content-Security-Policy': `${OWN_ORIGIN};style-src 'self';require-trusted-types-for 'script';trusted-types 'none'`,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  ...SECURITY,
};

/** For the API documentation. Its library has inline styles, and parses the Markdown of `/openapi.json` as HTML. */
const DOCUMENTATION: ResponseHeaders = {
  ...PAGE,
  'Content-Security-Policy': `${OWN_ORIGIN};style-src 'self' 'unsafe-inline'`,
};

/** Headers that let scripts of any origin read a response and its headers. */
const CORS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': '*',
};

/** The paths that support no other method than this one, by path. Scripts of other origins may not use them. */
export const CLOSED: ReadonlyMap<string, string> = new Map([
  ['/get-bypass', 'GET'],
  ['/rebuild', 'GET'],
  ['/pypi', 'POST'],
]);

const FIELDS = {
  page: fieldsOf(PAGE),
  documentation: fieldsOf(DOCUMENTATION),
  open: fieldsOf({ ...NO_CONTENT_SECURITY, ...CORS }),
  // Pages of other origins must not load these responses, for example as images.
  closed: fieldsOf({ ...NO_CONTENT_SECURITY, 'Cross-Origin-Resource-Policy': 'same-origin' }),
  openNotModified: fieldsOf(CORS),
  notModified: [],
};

/** @param status with 304, there are no security headers, because the response in the browser's cache has them. */
export function policyFields(path: string, status: number, isPage = false): HeaderFields {
  // Scripts of any origin may read the responses of all other paths, including errors.
  const isReadable = !isPage && !CLOSED.has(path);
  if (status === 304) return isReadable ? FIELDS.openNotModified : FIELDS.notModified;
  if (isPage) return path === '/docs' ? FIELDS.documentation : FIELDS.page;
  return isReadable ? FIELDS.open : FIELDS.closed;
}

/** Headers of the response to a preflight request. Browsers may cache the response for a day. */
const PREFLIGHT: ResponseHeaders = {
  'Access-Control-Allow-Methods': 'GET,HEAD',
  'Access-Control-Max-Age': '86400',
};

/**
 * Responds to preflight requests. Scripts of any origin may send any header, such as a trace id. This is safe: a header
 * gives rights only with a secret that the page must know, and without `Access-Control-Allow-Credentials` no cookies
 * are sent.
 * @returns undefined for other requests.
 */
export function preflight(ctx: Context): HttpResponse | undefined {
  // Makes caches store preflight responses, and errors of unknown paths, separately for each origin.
  ctx.state.headerFields.push('Vary', 'Origin');
  if (ctx.method !== 'OPTIONS' || !ctx.get('Access-Control-Request-Method')) return undefined;
  const wanted = ctx.get('Access-Control-Request-Headers');
  return {
    status: 204,
    headers: { ...PREFLIGHT, ...(wanted && { 'Access-Control-Allow-Headers': wanted }) },
  };
}
