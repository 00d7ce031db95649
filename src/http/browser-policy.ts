import cors from '@koa/cors';
import helmet from 'koa-helmet';
import type { Middleware } from 'koa';

/** What a script of another origin may read beside the usual headers. */
const EXPOSED = ['ETag', 'RateLimit', 'RateLimit-Policy', 'Retry-After', 'X-Results-Truncated'];

/** For how long a browser may remember that it may ask, in seconds. */
const PREFLIGHT_SECONDS = 86_400;

/** What browsers may do with any answer: nothing but read it. Addresses, which may hold a secret, are told to nobody. */
export function securityHeaders(): Middleware {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    referrerPolicy: { policy: 'no-referrer' },
    // For old browsers, or for pages with scripts.
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  });
}

/** Lets pages of every origin read an answer, and send the bypass token. */
export function anyOrigin(): Middleware {
  const allow = cors({
    origin: '*',
    allowMethods: ['GET', 'HEAD'],
    allowHeaders: ['X-Bypass-Token'],
    exposeHeaders: EXPOSED,
    maxAge: PREFLIGHT_SECONDS,
    // `problems` leaves the headers of an answer as they are.
    keepHeadersOnError: false,
  });
  return (ctx, next) => {
    ctx.set('Cross-Origin-Resource-Policy', 'cross-origin');
    return allow(ctx, next);
  };
}
