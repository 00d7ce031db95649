import { withDeadline } from '../util/deadline.js';
import { parseJson } from '../util/decode.js';
import { retryAfterSeconds } from '../util/http-response.js';

/** Maximum time of a response. The service responds within seconds, but networks may be slow. */
const TIMEOUT_MS = 30_000;

/** Wait before a retry if the response does not state one. */
const RETRY_SECONDS = 10;

/** Maximum wait before a retry. A longer `Retry-After` is reduced to this time. */
const MAX_RETRY_SECONDS = 3600;

/** Texts for temporary errors whose `detail` describes the HTTP request and would not help users of the page. */
const WORDS = new Map([
  [410, 'the list of packages has been updated meanwhile'],
  [429, 'too many requests from your address'],
]);

/** The rate limit is near if less than this share of it remains (0 to 1). */
const FEW_POINTS = 0.25;

/** Whether little of the client's rate limit is left, by the last response. */
export let isLimitNear = false;

/** A request failed. The message is for the user. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  /** @param retryAfter time until a retry may succeed, in seconds; undefined if a retry would fail. */
  constructor(
    message: string,
    readonly retryAfter?: number,
  ) {
    super(message);
  }
}

export type Members = Record<string, unknown>;

/**
 * @param path relative to the page.
 * @param isExpected rejects unexpected responses, such as the JSON of a proxy.
 * @throws {ApiError} if the request fails, or the response is truncated or unexpected, such as a login page.
 * @throws the signal's reason, if the signal is aborted.
 */
export async function requestJson(
  path: string,
  isExpected: (body: Members) => boolean,
  signal?: AbortSignal,
): Promise<{ body: Members; headers: Headers }> {
  const [response, text] = await withDeadline(TIMEOUT_MS, signal, async (signal) => {
    const response = await fetch(path, { signal });
    return [response, await response.text()] as const;
  }).catch(() => {
    signal?.throwIfAborted();
    throw new ApiError('The service cannot be reached.', RETRY_SECONDS);
  });
  const { headers } = response;
  const numberIn = (name: string, pattern: RegExp) => Number(pattern.exec(headers.get(name) ?? '')?.[1]);
  // Headers such as `"reading";r=29;t=60` and `"reading";q=120;w=60`.
  isLimitNear = numberIn('RateLimit', /;r=(\d+)/) < FEW_POINTS * numberIn('RateLimit-Policy', /;q=(\d+)/);
  const body = parseJson(text);
  if (!response.ok) throw errorOf(response, body);
  if (isObject(body) && isExpected(body)) return { body, headers };
  throw new ApiError(
    'An unexpected response arrived instead of the service’s. If this persists, reload the page.',
    RETRY_SECONDS,
  );
}

/** The error that a failed response describes. If the body is no problem (RFC 9457), the error names the status. */
function errorOf({ status, headers }: Response, body: unknown): ApiError {
  const { detail } = isObject(body) ? body : {};
  const stated = typeof detail === 'string' && detail !== '' ? detail : undefined;
  const words = WORDS.get(status) ?? stated ?? `the service responded with status ${status}`;
  const wait = retryAfterSeconds(headers.get('Retry-After')) || RETRY_SECONDS;
  const isTemporary = WORDS.has(status) || status >= 500;
  return new ApiError(
    `${words.charAt(0).toUpperCase()}${words.slice(1)}.`,
    isTemporary ? Math.min(wait, MAX_RETRY_SECONDS) : undefined,
  );
}

export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null;
}

/** @param echoed members that the response must contain, so that a response to another request is rejected. */
export function listWith(echoed: Members): (body: Members) => boolean {
  return ({ results, ...body }) =>
    Object.entries(echoed).every(([name, value]) => body[name] === value) &&
    Array.isArray(results) &&
    results.every(
      (one) => isObject(one) && ['name', 'version', 'url'].every((name) => typeof one[name] === 'string'),
    );
}
