import { etagOf, matches } from './etag.js';
import type { Encoding } from './compression.js';
import type { RenderedResponse, ResponseCache, ResponseSource } from './response-cache.js';
import { notModified } from './prepared-response.js';
import type { Context } from './request-context.js';

/**
 * Responds to a request whose response is constant for a generation: with 304 if the client has it, from the
 * cache, or with the result of `create`.
 * @param request the normalised request: equal requests have equal responses.
 */
export async function respondFromCache(
  ctx: Context,
  cache: ResponseCache,
  source: ResponseSource,
  request: string,
  create: () => Promise<RenderedResponse>,
): Promise<void> {
  let answer = cache.get(source.index, request);
  const condition = ctx.req.headers['if-none-match'];
  // A tag alone decides a match; `*` matches any 200, so it is checked once the response is known.
  if (condition !== undefined && condition !== '*') {
    const version = answer?.version ?? { etag: etagOf(source.index, request), snapshot: source.snapshot };
    if (answer?.response.status !== 404 && matches(condition, version.etag)) {
      cache.counts.not_modified++;
      ctx.state.prepared = notModified(version);
      return;
    }
  }
  if (answer === undefined) answer = await cache.getOrCreate(source, request, create);
  else cache.counts.hit++;
  if (condition === '*' && answer.response.status === 200) {
    ctx.state.prepared = notModified(answer.version);
    return;
  }
  const encoding = encodingFor(ctx);
  const encoded = encoding && (await cache.encode(answer, encoding));
  ctx.state.prepared = encoded ?? answer.response;
}

const ENCODINGS: Encoding[] = ['br', 'gzip'];

/** The best encoding that the client accepts; undefined without `Accept-Encoding`. */
export function encodingFor(ctx: Context): Encoding | undefined {
  if (!ctx.req.headers['accept-encoding']) return undefined;
  // Browsers list both with equal weight, the better one last.
  return ENCODINGS.find((encoding) => ctx.acceptsEncodings(encoding) === encoding);
}
