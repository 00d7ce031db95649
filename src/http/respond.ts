import type { AnswerCache, Answer, Encoding } from './answer-cache.js';
import { etagOf } from './answer-cache.js';
import type { Context } from './request-state.js';

/**
 * A shared cache may answer by itself for half a minute, and for five more while it fetches the next response: a snapshot
 * is older than that anyway. While the service is down or answers 5xx, it may go on for a day (RFC 5861).
 */
const CACHE_CONTROL = 'public, max-age=30, stale-while-revalidate=300, stale-if-error=86400';

/**
 * Answers a request that is answered the same as long as a generation lives: 304 where the client has it, from the cache
 * where that has it, and by `make` otherwise.
 * @param request the normalised request: equal ones have equal answers.
 */
export async function respond(
  ctx: Context,
  cache: AnswerCache,
  generation: string,
  request: string,
  make: () => Promise<Answer>,
): Promise<void> {
  let answer = cache.get(generation, request);
  const condition = ctx.get('If-None-Match');
  if (condition !== '') {
    const etag = answer?.etag ?? etagOf(generation, request);
    if (matches(condition, etag)) {
      cache.counts.not_modified++;
      ctx.status = 304;
      setHeaders(ctx, etag);
      return;
    }
  }
  if (answer === undefined) answer = await cache.make(generation, request, make);
  else cache.counts.hit++;
  setHeaders(ctx, answer.etag);
  if (answer.headers !== undefined) ctx.set(answer.headers);
  const encoding = encodingFor(ctx);
  const encoded = encoding && (await cache.encode(answer, encoding));
  if (encoded !== undefined && encoding !== undefined) ctx.set('Content-Encoding', encoding);
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = encoded ?? answer.body;
}

const ENCODINGS: Encoding[] = ['br', 'gzip'];

function setHeaders(ctx: Context, etag: string): void {
  ctx.set('ETag', etag);
  ctx.set('Cache-Control', CACHE_CONTROL);
  ctx.set('Vary', 'Accept-Encoding');
}

/** Whether `If-None-Match` names the answer that the client would get: the weak comparison of RFC 9110, section 13.1.2. */
export function matches(condition: string, etag: string): boolean {
  if (condition === etag || condition === '*') return true;
  return condition.split(',').some((candidate) => opaque(candidate.trim()) === opaque(etag));
}

function opaque(etag: string): string {
  return etag.startsWith('W/') ? etag.slice(2) : etag;
}

/** The best encoding that the client accepts; none where it says nothing. */
export function encodingFor(ctx: Context): Encoding | undefined {
  if (ctx.get('Accept-Encoding') === '') return undefined;
  // Browsers name both without a preference, and the better one last.
  return ENCODINGS.find((encoding) => ctx.acceptsEncodings(encoding) === encoding);
}
