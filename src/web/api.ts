/** A package in responses of `/browse` and `/search`. */
export interface Package {
  no: number;
  name: string;
  version: string;
  url: string;
}

/** 0: the name is the query; 1: it starts with it; 2: it contains it. */
export type Match = Package & { rank: 0 | 1 | 2 };

/** A package whose name is easily mistaken for another, and by how many characters they differ. */
export type Similar = Package & { distance: 0 | 1 | 2 };

/** A package that differs from the previous snapshot. A removed one has its last entry. */
export type Change = Package & { change: 'added' | 'removed' | 'updated' };

/** How many packages were added, removed and updated. */
export type ChangeCounts = Record<Change['change'], number>;

/** Why a request failed, as text for the user, and when a retry may succeed. */
export interface ApiError {
  words: string;
  /** In seconds; undefined if the same request would fail again. */
  retryAfter: number | undefined;
}

export type ApiResult<T> = ({ body: T } | { error: ApiError }) & { headers: Headers };

/** Delay before a retry if no response arrived, and so no `Retry-After`. */
const UNREACHABLE_RETRY_SECONDS = 5;

/** Texts for problems whose detail is about the request, not about the page. */
const WORDS: Record<string, string> = {
  not_found: 'This service does not record changes.',
  rate_limited: 'Too many requests from your address.',
  snapshot_gone: 'The list of packages has been updated: reload the page.',
};

/**
 * Requests JSON from the service. A failed request is a result, not an exception.
 * @param path relative to the page.
 * @throws the signal's reason, if it is aborted.
 */
export async function fetchJson<T>(path: string, signal?: AbortSignal): Promise<ApiResult<T>> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(path, signal === undefined ? {} : { signal });
    text = await response.text();
  } catch (cause) {
    signal?.throwIfAborted();
    if (!(cause instanceof TypeError)) throw cause;
    const error = { words: 'The service cannot be reached.', retryAfter: UNREACHABLE_RETRY_SECONDS };
    return { error, headers: new Headers() };
  }
  const { headers } = response;
  if (response.ok) return { body: JSON.parse(text) as T, headers };
  return { error: toApiError(response, text), headers };
}

/** The error in a problem (RFC 9457), or in another response, such as a proxy's. */
function toApiError(response: Response, text: string): ApiError {
  const later = response.headers.get('Retry-After');
  const retryAfter = later === null ? undefined : Math.max(1, Number(later) || 1);
  const isProblem = response.headers.get('Content-Type')?.startsWith('application/problem+json') ?? false;
  const { code, detail } = isProblem
    ? (JSON.parse(text) as { code: string; detail: string })
    : { code: '', detail: `The service responded with status ${response.status}` };
  return { words: WORDS[code] ?? `${detail.charAt(0).toUpperCase()}${detail.slice(1)}.`, retryAfter };
}

/**
 * The remaining share of the client's rate limit, 0 to 1, from headers such as `"reading";r=117;t=60` and
 * `"reading";q=120;w=60`. Undefined without them.
 */
export function budgetLeft(headers: Headers): number | undefined {
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

/** The query string of the next page, from the `Link` header; undefined on the last one. */
export function nextPage(headers: Headers): string | undefined {
  return /<(\?[^>]*)>; rel="next"/.exec(headers.get('Link') ?? '')?.[1];
}
