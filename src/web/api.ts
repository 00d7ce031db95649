import { withDeadline } from '../util/deadline.js';
import { parseJson } from '../util/parse-json.js';
import { retryAfterSeconds } from '../util/retry-after.js';

/** A package in a response. */
export interface Package {
  no: number;
  name: string;
  version: string;
  url: string;
  /** How much the package is used, such as its downloads. Missing in snapshots without weights. */
  weight?: number;
}

/** 0: the name equals the query; 1: it starts with the query; 2: it contains the query. */
export type Match = Package & { rank: 0 | 1 | 2 };

/** A package that differs from the previous snapshot. A removed package has its last entry. */
export type Change = Package & { change: 'added' | 'removed' | 'updated' };

/** How many packages were added, removed and updated. */
export type ChangeCounts = Record<Change['change'], number>;

/** Why a request failed, as text for the user, and when a retry may succeed. */
export interface ApiError {
  words: string;
  /** Time until a retry may succeed, in seconds; 0 if the time is unknown. Undefined if a retry would fail. */
  retryAfter: number | undefined;
}

export type ApiResult<T> = ({ body: T } | { error: ApiError }) & { headers: Headers };

/** The rate limit is near if less than this share of it remains (0 to 1). */
const FEW_POINTS = 0.25;

/** The remaining share of the client's rate limit (0 to 1), from the last response with `RateLimit` headers. */
let points = 1;

/** Whether little of the client's rate limit is left. */
export function isLimitNear(): boolean {
  return points < FEW_POINTS;
}

type Members = Record<string, unknown>;

/** Checks that the JSON of a response has the expected members. */
export type Guard<T> = (value: unknown) => value is T;

/** Maximum time of a response. The service responds within seconds, but networks may be slow. */
const TIMEOUT_MS = 30_000;

/** Maximum wait before a retry. A longer `Retry-After` is reduced to this time. */
const MAX_RETRY_SECONDS = 3600;

/**
 * Texts by problem code, for problems whose `detail` describes the HTTP request and would not help users of the page.
 */
const WORDS = new Map<unknown, string>([
  ['not_found', 'This service does not record changes.'],
  ['rate_limited', 'Too many requests from your address.'],
  ['snapshot_gone', 'The list of packages has been updated: reload the page.'],
]);

/**
 * Requests JSON from the service. Failed requests, and truncated or unexpected responses (such as a login page), are
 * returned as an error, not thrown.
 * @param path relative to the page.
 * @throws the signal's reason, if the signal is aborted.
 */
export async function fetchJson<T>(
  path: string,
  isExpected: Guard<T>,
  signal?: AbortSignal,
): Promise<ApiResult<T>> {
  let response: Response;
  let text: string;
  try {
    [response, text] = await withDeadline(TIMEOUT_MS, signal, async (signal) => {
      const found = await fetch(path, { signal });
      return [found, await found.text()];
    });
  } catch {
    signal?.throwIfAborted();
    return { error: { words: 'The service cannot be reached.', retryAfter: 0 }, headers: new Headers() };
  }
  const { headers } = response;
  points = remainingShare(headers) ?? points;
  const body = parseJson(text);
  if (!response.ok) return { error: toApiError(response, body), headers };
  if (isExpected(body)) return { body, headers };
  const words = 'An unexpected response arrived instead of the service’s. If this persists, reload the page.';
  return { error: { words, retryAfter: 0 }, headers };
}

/**
 * The error that a failed response describes. For a response that is not a problem (RFC 9457), such as a proxy's, the
 * error names the status.
 */
function toApiError({ status, headers }: Response, body: unknown): ApiError {
  const isProblem = headers.get('Content-Type')?.startsWith('application/problem+json') ?? false;
  const { code, detail } = isProblem && isObject(body) ? body : {};
  const known =
    typeof detail === 'string' && detail !== '' ? detail : `the service responded with status ${status}`;
  const isTemporary = headers.has('Retry-After') || status === 429 || status >= 500;
  return {
    words: WORDS.get(code) ?? `${known.charAt(0).toUpperCase()}${known.slice(1)}.`,
    retryAfter: isTemporary ? secondsToRetry(headers) : undefined,
  };
}

/**
 * The seconds to wait before a retry, from `Retry-After`, at most `MAX_RETRY_SECONDS`. 0 if the header is missing or
 * invalid, or its date is past.
 */
export function secondsToRetry(headers: Headers): number {
  // Uses the clock of the service, because the user's clock may be wrong.
  const now = Date.parse(headers.get('Date') ?? '') || Date.now();
  return Math.min(retryAfterSeconds(headers.get('Retry-After'), now) ?? 0, MAX_RETRY_SECONDS);
}

export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null;
}

export function isPackage(value: unknown): value is Package {
  return (
    isObject(value) &&
    ['name', 'version', 'url'].every((member) => typeof value[member] === 'string') &&
    ['number', 'undefined'].includes(typeof value['weight'])
  );
}

function isMatch(value: unknown): value is Match {
  return isPackage(value) && [0, 1, 2].includes((value as Match).rank);
}

export function isChange(value: unknown): value is Change {
  return isPackage(value) && ['added', 'removed', 'updated'].includes((value as Change).change);
}

/**
 * Expects a list of results.
 * @param echoed members and values that the response must contain, so that a response to another request is rejected.
 */
export function listOf<T>(isResult: Guard<T>, echoed: Members): Guard<{ results: T[] }> {
  return (body): body is { results: T[] } =>
    isObject(body) &&
    Object.entries(echoed).every(([name, value]) => body[name] === value) &&
    Array.isArray(body['results']) &&
    body['results'].every(isResult);
}

/** Matches, and on the first page the total number of matches. */
interface Search {
  results: Match[];
  total?: number;
  total_is_exact?: boolean;
}

/** Expects matches of a query. */
export function searchFor(query: unknown): Guard<Search> {
  const isList = listOf(isMatch, { query });
  return (body): body is Search =>
    isList(body) && ['number', 'undefined'].includes(typeof (body as Search).total);
}

interface Changes {
  from: string;
  to: string;
  results: Change[];
}

export function isChanges(body: unknown): body is Changes {
  const { from, to } = isObject(body) ? body : {};
  return typeof from === 'string' && typeof to === 'string' && listOf(isChange, {})(body);
}

interface Lookup {
  results: [{ package: Package | null }];
}

/** Expects the result of looking up one name. */
export function lookupOf(name: unknown): Guard<Lookup> {
  const isResult = (value: unknown): value is Lookup['results'][0] =>
    isObject(value) && value['name'] === name && (value['package'] === null || isPackage(value['package']));
  return (body): body is Lookup => listOf(isResult, {})(body) && body.results.length === 1;
}

/**
 * The remaining share of the client's rate limit, 0 to 1, from headers such as `"reading";r=117;t=60` and
 * `"reading";q=120;w=60`. Undefined without these headers.
 */
function remainingShare(headers: Headers): number | undefined {
  const left = /;r=(\d+)/.exec(headers.get('RateLimit') ?? '')?.[1];
  const all = /;q=(\d+)/.exec(headers.get('RateLimit-Policy') ?? '')?.[1];
  return left === undefined || all === undefined ? undefined : Number(left) / Number(all);
}

/** Parses `added=123, removed=45, updated=6`; undefined if the snapshot was not compared with another. */
export function changeCounts(headers: Headers): ChangeCounts | undefined {
  const found = headers.get('X-Snapshot-Changes')?.matchAll(/(\w+)=(\d+)/g);
  if (found === undefined) return undefined;
  const counts = Object.fromEntries(Array.from(found, ([, change = '', count]) => [change, Number(count)]));
  return { added: 0, removed: 0, updated: 0, ...counts };
}

/** The query string of the next page, from the `Link` header; undefined on the last page. */
export function nextPage(headers: Headers): string | undefined {
  return /<(\?[^>]*)>; rel="next"/.exec(headers.get('Link') ?? '')?.[1];
}
