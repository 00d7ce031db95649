import type { IncomingMessage, ServerResponse } from 'node:http';
import cors from '@koa/cors';
import helmet, { type HelmetOptions } from 'helmet';
import type { Middleware } from 'koa';
import type { RawHeaders } from './prepared-response.js';
import { REQUEST_ID } from './request-id.js';
import type { RequestState } from './request-context.js';

/** What a script of another origin may read beside the usual headers. */
const EXPOSED = [
  'ETag',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  REQUEST_ID,
  'X-Results-Truncated',
].join(',');

/** For how long a browser may remember that it may ask, in seconds. */
const PREFLIGHT_SECONDS = 86_400;

/** Of JSON, a browser may do nothing but read it. What is left out is about pages and old browsers. */
const ANY_ANSWER: HelmetOptions = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
  referrerPolicy: { policy: 'no-referrer' },
  strictTransportSecurity: true,
  xContentTypeOptions: true,
  crossOriginOpenerPolicy: false,
  crossOriginResourcePolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xFrameOptions: false,
  xPermittedCrossDomainPolicies: false,
  xPoweredBy: false,
  xXssProtection: false,
};

const OWN = ["'self'"];

/** A page may load the service's own files and ask the service; it has no inline code, and makes no HTML of texts. */
const PAGE: HelmetOptions = {
  ...ANY_ANSWER,
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: OWN,
      styleSrc: OWN,
      imgSrc: OWN,
      connectSrc: OWN,
      formAction: OWN,
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
      requireTrustedTypesFor: ["'script'"],
      trustedTypes: ["'none'"],
    },
  },
  crossOriginOpenerPolicy: { policy: 'same-origin' },
  crossOriginResourcePolicy: { policy: 'same-origin' },
};

/** Security headers of every response that is not a part of the page. */
export const SECURITY_HEADERS: RawHeaders = headersOf(ANY_ANSWER);

/** Security headers of the page and its files. */
export const PAGE_SECURITY_HEADERS: RawHeaders = headersOf(PAGE);

/** Lets scripts of every origin read a response. */
const CORS_HEADERS: RawHeaders = [
  'Access-Control-Allow-Origin',
  '*',
  'Access-Control-Expose-Headers',
  EXPOSED,
];

/** Marks an answer as a part of the page that people see. */
export function markAsPage(): Middleware<RequestState> {
  return (ctx, next) => {
    ctx.state.isPage = true;
    return next();
  };
}

/** Lets pages of every origin read an answer. */
export function allowAnyOrigin(): Middleware<RequestState> {
  return (ctx, next) => {
    ctx.state.rawHeaders.push(...CORS_HEADERS);
    return next();
  };
}

/** Answers browsers that ask whether a page of any origin may send the bypass token. */
export function preflight(): Middleware {
  return cors({
    origin: '*',
    allowMethods: ['GET', 'HEAD'],
    allowHeaders: ['X-Bypass-Token'],
    maxAge: PREFLIGHT_SECONDS,
  });
}

/** What is asked for with a secret is kept nowhere and shown on no other site, be it an error. */
export function confidential(): Middleware {
  return (ctx, next) => {
    ctx.set({ 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' });
    return next();
  };
}

/** The headers that helmet sets, whatever the request. */
function headersOf(options: HelmetOptions): RawHeaders {
  const headers: string[] = [];
  const response = { setHeader: (name: string, value: string) => headers.push(name, value) };
  const request: unknown = {};
  helmet(options)(request as IncomingMessage, response as unknown as ServerResponse, (error?: unknown) => {
    if (error !== undefined) throw new Error('helmet refused its options', { cause: error });
  });
  return headers;
}
