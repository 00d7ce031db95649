/**
 * A shared cache may answer by itself for half a minute, and for five more while it fetches the next response: a snapshot
 * is older than that anyway. While the service is down or answers 5xx, it may go on for a day (RFC 5861).
 */
const CACHE_CONTROL = 'public, max-age=30, stale-while-revalidate=300, stale-if-error=86400';

/** Names and values of headers in turn, as in `rawHeaders` of Node: the form that is sent fastest. */
export type RawHeaders = readonly string[];

/** A response that many requests share. Each adds its own headers, those in `RequestState.rawHeaders`. */
export interface PreparedResponse {
  status: number;
  rawHeaders: RawHeaders;
  body?: Buffer;
}

/** What identifies the content of a response: its tag, and the snapshot that it was made of. */
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
 * A response with a body: JSON, unless its headers say otherwise; with another status than 200, a problem.
 * @param headers special to this response, such as `Content-Encoding`.
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
