/**
 * Shared caches may reuse a response for 30 seconds, and for five more minutes while they revalidate it: a
 * snapshot is older than that anyway. While the service is down or responds with 5xx, they may reuse it for a
 * day (RFC 5861).
 */
const CACHE_CONTROL = 'public, max-age=30, stale-while-revalidate=300, stale-if-error=86400';

/** Alternating header names and values, like Node's `rawHeaders`: the fastest form to send. */
export type RawHeaders = readonly string[];

/** A response that many requests share. Each request adds the headers in `RequestState.rawHeaders`. */
export interface PreparedResponse {
  status: number;
  rawHeaders: RawHeaders;
  body?: Buffer;
}

/** Identifies the content of a response: its tag and its snapshot. */
export interface ResponseVersion {
  etag: string;
  snapshot: string;
}

/** Headers of both the 200 and the 304. */
function validators({ etag, snapshot }: ResponseVersion): RawHeaders {
  return ['ETag', etag, 'X-Snapshot', snapshot, 'Cache-Control', CACHE_CONTROL, 'Vary', 'Accept-Encoding'];
}

/** 304: the client already has the response with this tag. */
export function notModified(version: ResponseVersion): PreparedResponse {
  return { status: 304, rawHeaders: validators(version) };
}

const JSON_TYPE = 'application/json; charset=utf-8';
const PROBLEM_TYPE = 'application/problem+json';

/**
 * A response with a body: JSON by default, or a problem if the status is not 200.
 * @param headers additional headers, such as `Content-Encoding`. They override the defaults.
 */
export function bodyResponse(
  version: ResponseVersion,
  status: number,
  body: Buffer,
  headers: Readonly<Record<string, string>>,
): PreparedResponse {
  const rawHeaders = [
    ...validators(version),
    ...Object.entries({
      'Content-Type': status === 200 ? JSON_TYPE : PROBLEM_TYPE,
      ...headers,
      'Content-Length': String(body.length),
    }).flat(),
  ];
  return { status, rawHeaders, body };
}
