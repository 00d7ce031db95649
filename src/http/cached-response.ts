import { etagOf, matches } from './etag.js';
import { type RenderedResponse, type ResponseCache, type Encoding } from './response-cache.js';
import { notModified } from './prepared-response.js';
import type { Context } from './request-context.js';

/**
 * Answers a request that is answered the same as long as a generation lives: 304 where the client has it, from the cache
 * where that has it, and by `create` otherwise.
 * @param request the normalised request: equal ones have equal answers.
 */
export async function respondFromCache(
  ctx: Context,
  cache: ResponseCache,
  generation: string,
  request: string,
  create: () => Promise<RenderedResponse>,
): Promise<void> {
  let answer = cache.get(generation, request);
  const condition = ctx.req.headers['if-none-match'];
  if (condition !== undefined) {
    const etag = answer?.etag ?? etagOf(generation, request);
    if (matches(condition, etag)) {
      cache.counts.not_modified++;
      ctx.state.prepared = notModified(etag);
      return;
    }
  }
  if (answer === undefined) answer = await cache.getOrCreate(generation, request, create);
  else cache.counts.hit++;
  const encoding = encodingFor(ctx);
  const encoded = encoding && (await cache.encode(answer, encoding));
  ctx.state.prepared = encoded ?? answer.response;
}

const ENCODINGS: Encoding[] = ['br', 'gzip'];

/** The best encoding that the client accepts; none without `Accept-Encoding`. */
export function encodingFor(ctx: Context): Encoding | undefined {
  if (!ctx.req.headers['accept-encoding']) return undefined;
  // Browsers name both without a preference, and the better one last.
  return ENCODINGS.find((encoding) => ctx.acceptsEncodings(encoding) === encoding);
}
