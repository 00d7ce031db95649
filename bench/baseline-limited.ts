import { text } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import Koa from 'koa';
import proxyAddr from 'proxy-addr';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { serve } from './serve.js';

/**
 * Baseline of a limited response: a Koa that counts each request by `RateLimiterRedis`, with the options of the service,
 * and responds with the text from standard input, as JSON.
 */
const body = Buffer.from(await text(process.stdin));
const storeClient = new Redis(process.env['REDIS_URL'] as string, {
  enableOfflineQueue: false,
  // Not 50 ms as in the service: this baseline has no fallback, and its first requests take longer.
  commandTimeout: 5000,
});
await new Promise((resolve) => storeClient.once('ready', resolve));
const limiter = new RateLimiterRedis({
  storeClient,
  points: Number(process.env['RATE_LIMIT_POINTS']),
  duration: 60,
  keyPrefix: 'baseline:limit',
  rejectIfRedisNotReady: true,
});
const isTrusted = proxyAddr.compile('loopback');

const app = new Koa();
app.use(async (ctx, next) => {
  const { remainingPoints, msBeforeNext } = await limiter.consume(proxyAddr(ctx.req, isTrusted));
  ctx.set('RateLimit-Policy', `"reading";q=${limiter.points};w=60`);
  ctx.set('RateLimit', `"reading";r=${remainingPoints};t=${Math.ceil(msBeforeNext / 1000)}`);
  await next();
});
app.use((ctx) => {
  ctx.type = 'json';
  ctx.body = body;
});
serve(app);
