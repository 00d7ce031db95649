import { STATUS_CODES } from 'node:http';

/** The stable words by which a program tells the errors apart. */
export type ProblemCode =
  | 'invalid_parameter'
  | 'malformed_request'
  | 'request_timeout'
  | 'expectation_failed'
  | 'headers_too_large'
  | 'rate_limited'
  | 'forbidden'
  | 'initializing'
  | 'rebuilding'
  | 'search_unavailable'
  | 'not_found'
  | 'method_not_allowed'
  | 'internal';

interface ProblemExtras {
  /** Answer headers, such as `Retry-After`. */
  headers?: Record<string, string>;
  /** Members beside the standard ones (RFC 9457, section 3.2). */
  members?: Record<string, unknown>;
  /** For the log only. */
  cause?: unknown;
}

/** An answer other than success: thrown anywhere, written by `problems()` alone. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly headers: Record<string, string>;
  readonly members: Record<string, unknown>;

  /** @param detail says what was wrong to the client: it must not name hosts, stacks or engine queries. */
  constructor(
    readonly status: number,
    readonly code: ProblemCode,
    readonly detail: string,
    extras: ProblemExtras = {},
  ) {
    super(detail, { cause: extras.cause });
    this.headers = extras.headers ?? {};
    this.members = extras.members ?? {};
  }
}

/** The body of a problem (RFC 9457). */
export function problemBody(status: number, code: ProblemCode, detail: string): Record<string, unknown> {
  return { type: 'about:blank', title: STATUS_CODES[status], status, detail, code };
}

/** 400: the parameter `name` and what it must be. */
export function invalidParameter(name: string, must: string): Problem {
  return new Problem(400, 'invalid_parameter', `${name} ${must}`);
}

/** 503 with `Retry-After`. */
export function unavailable(
  code: ProblemCode,
  detail: string,
  retryAfterSeconds: number,
  extras: Omit<ProblemExtras, 'headers'> = {},
): Problem {
  return new Problem(503, code, detail, { ...extras, headers: { 'Retry-After': String(retryAfterSeconds) } });
}

/** 503 for reads while there is no complete index yet. */
export function initializing(): Problem {
  return unavailable('initializing', 'the first snapshot is still being loaded', 2);
}

/** 503 for requests that need Elasticsearch while it does not answer. The cause is for the log. */
export function searchUnavailable(cause?: unknown): Problem {
  return unavailable('search_unavailable', 'the search engine does not answer at the moment', 2, { cause });
}
