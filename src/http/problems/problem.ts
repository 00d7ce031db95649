import { STATUS_CODES } from 'node:http';

/** The properties that all problems of one code share. */
interface ProblemType {
  status: number;
  title: string;
  /** The default `detail` of the response. */
  detail: string;
  /** The condition of the problem, for the OpenAPI document. */
  description: string;
  headers: Readonly<Record<string, string>>;
}

function type(status: number, detail: string, description: string, headers = {}): ProblemType {
  return { status, title: STATUS_CODES[status] ?? '', detail, description, headers };
}

/** All error responses (RFC 9457), by their stable code. */
export const PROBLEMS = {
  invalid_parameter: type(
    400,
    'q must have 2 to 100 characters',
    'a parameter is missing, malformed or repeated; `detail` names it',
  ),
  forbidden: type(
    403,
    'a valid secret is required',
    'the secret is wrong, missing or not configured, or a browser sends it for a page of another site',
  ),
  not_found: type(404, 'this path does not exist', 'the path is unknown'),
  unknown_package: type(404, 'no package has this name', 'no package has this name'),
  snapshot_gone: type(
    410,
    'snapshot is neither the current nor the previous one; start again without it',
    '`snapshot` is not the current or previous one, or `since` is not in the chain of the current one',
  ),
  method_not_allowed: type(405, 'this path supports GET and HEAD only', 'the method is not GET or HEAD', {
    Allow: 'GET, HEAD',
  }),
  rate_limited: type(
    429,
    'this request costs 10 points, fewer were left, and the limit resets at 2026-01-02T03:04:05Z',
    'the request costs more points than this address has left until the limit resets, or too many wrong secrets came from it',
  ),
  internal: type(500, 'an unexpected error', 'the service has a defect'),
  initializing: type(
    503,
    'the first snapshot is still being loaded',
    'the first snapshot is still being loaded, or this one lacks what the request needs',
    { 'Retry-After': '2' },
  ),
  rebuilding: type(
    503,
    'a rebuild is running; until it is complete, what is served does not change',
    'a rebuild is running',
    { 'Retry-After': '5' },
  ),
  search_unavailable: type(
    503,
    'the search engine does not respond',
    'Elasticsearch does not respond, or too many searches are waiting',
    { 'Retry-After': '2' },
  ),
} as const satisfies Record<string, ProblemType>;

export type ProblemCode = keyof typeof PROBLEMS;

interface ProblemOptions {
  /** Replaces the default `detail`. Must not contain hosts, stacks or queries of Elasticsearch. */
  detail?: string;
  /** Extend or override the default headers. */
  headers?: Record<string, string>;
  /** Members in addition to the standard ones (RFC 9457, section 3.2). */
  members?: Record<string, unknown>;
  /** For the log only. */
  cause?: unknown;
}

/** An error response. If middleware or a handler throws it, `respond` (`src/app.ts`) sends it. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(
    readonly code: ProblemCode,
    options: ProblemOptions = {},
  ) {
    const { status, title, ...defaults }: ProblemType = PROBLEMS[code];
    const { detail = defaults.detail, headers, members, cause } = options;
    super(detail, { cause });
    this.status = status;
    this.headers = { ...defaults.headers, ...headers };
    this.body = { type: 'about:blank', title, status, detail, code, ...members };
  }
}

export function retryAfter(seconds: number): Record<string, string> {
  return { 'Retry-After': String(seconds) };
}
