import { encodingFor } from './compression.js';
import { etagOf, matches } from './etag.js';
import type { Context } from './request-context.js';
import { notModified, type BodyResponse, type HttpResponse } from './response.js';
import type { ResponseCache } from './response-cache.js';

/**
 * Shared caches may reuse a response for 30 seconds, and for five more minutes while they revalidate it: a
 * snapshot is older than that anyway. While the service is down or responds with 5xx, they may reuse it for a
 * day (RFC 5861).
 */
const CACHE_CONTROL = 'public, max-age=30, stale-while-revalidate=300, stale-if-error=86400';

/** The generation that a response is built from. */
interface ResponseSource {
  /** Its index name, unique to the generation. */
  index: string;
  /** Its id in responses. */
  snapshot: string;
}

/**
 * Responds to a request whose response is constant for a generation: with 304 if the client has it, from the
 * cache, or with the result of `create`.
 * @param request the normalised request: equal requests have equal responses.
 */
export async function respondFromCache(
  { req }: Context,
  cache: ResponseCache,
  source: ResponseSource,
  request: string,
  create: () => Promise<BodyResponse>,
): Promise<HttpResponse> {
  const key = `${source.index} ${request}`;
  const condition = req.headers['if-none-match'];
  // A tag alone decides a match, without a search: only a 200 has this one.
  if (condition !== undefined && condition !== '*') {
    const validators = validatorsOf(source, request);
    if (matches(condition, validators.ETag)) {
      cache.counts.not_modified++;
      return notModified(validators);
    }
  }
  const response = await cache.get(key, async () => {
    const { status, headers, body } = await create();
    // A problem has another tag: a 304 must refer to a 200.
    const tagged = status === 200 ? request : `${status} ${request}`;
    return { status, headers: { ...headers, ...validatorsOf(source, tagged) }, body };
  });
  // `*` matches any 200.
  if (condition === '*' && response.status === 200) return notModified(validatorsOf(source, request));
  const encoding = encodingFor(req.headers['accept-encoding']);
  return encoding === undefined ? response : cache.inEncoding(key, response, encoding);
}

/** Headers of both the response and the 304. */
function validatorsOf({ index, snapshot }: ResponseSource, request: string) {
  return {
    ETag: etagOf(index, request),
    'X-Snapshot': snapshot,
    'Cache-Control': CACHE_CONTROL,
    Vary: 'Accept-Encoding',
  };
}
