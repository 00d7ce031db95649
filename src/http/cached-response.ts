import { etagOf, matches } from './etag.js';
import type { Encoding, RenderedResponse, ResponseCache, ResponseSource } from './response-cache.js';
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
  source: ResponseSource,
  request: string,
  create: () => Promise<RenderedResponse>,
): Promise<void> {
  let answer = cache.get(source.index, request);
  const condition = ctx.req.headers['if-none-match'];
  // A tag tells what the client has; `*` does not, and is answered by what there is.
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

/** The best encoding that the client accepts; none without `Accept-Encoding`. */
export function encodingFor(ctx: Context): Encoding | undefined {
  if (!ctx.req.headers['accept-encoding']) return undefined;
  // Browsers name both without a preference, and the better one last.
  return ENCODINGS.find((encoding) => ctx.acceptsEncodings(encoding) === encoding);
}
