import { STATUS_CODES } from 'node:http';

/** Maximum size of the request line and all headers of a request, in bytes. */
export const MAX_HEADER_BYTES = 16 * 1024;

/** What all problems of one code have in common. */
interface ProblemType {
  status: number;
  title: string;
  /** The default text. */
  detail: string;
  /** When it occurs, for the OpenAPI document. */
  description: string;
  headers: Readonly<Record<string, string>>;
}

function type(status: number, detail: string, description: string, headers = {}): ProblemType {
  return { status, title: STATUS_CODES[status] ?? '', detail, description, headers };
}

/** Every response that is an error (RFC 9457), by the stable code that tells programs which one it is. */
export const PROBLEMS = {
  invalid_parameter: type(
    400,
    'q must have 2 to 100 characters',
    'a parameter is missing, malformed or repeated; `detail` names it',
  ),
  malformed_request: type(
    400,
    'the address of the request is not a valid URL',
    'the request is not valid HTTP',
  ),
  forbidden: type(
    403,
    'this needs the right secret',
    'the secret is wrong, missing or not configured, or a browser sends it for a page of another site',
  ),
  not_found: type(404, 'there is nothing at this path', 'the path is unknown'),
  unknown_package: type(404, 'no package has this name', 'no package has this name'),
  snapshot_gone: type(
    410,
    'this snapshot is not available any more; start again without it',
    '`snapshot` is neither the current nor the previous one, or `since` none of those that led to the current one',
  ),
  method_not_allowed: type(
    405,
    'this path answers GET and HEAD only',
    'the method is another than GET and HEAD',
    { Allow: 'GET, HEAD' },
  ),
  request_timeout: type(408, 'the request did not arrive in time', 'the request did not arrive in time'),
  expectation_failed: type(
    417,
    'Expect must be 100-continue',
    'the header `Expect` is another than `100-continue`',
  ),
  headers_too_large: type(
    431,
    `the address and the headers must have at most ${MAX_HEADER_BYTES} bytes`,
    'the address and the headers are too long',
  ),
  rate_limited: type(
    429,
    'too many requests from this address',
    'too many requests, or wrong secrets, came from this address',
  ),
  internal: type(500, 'an unexpected error', 'the service has a defect'),
  initializing: type(
    503,
    'the first snapshot is still being loaded',
    'the first snapshot is still being loaded',
    { 'Retry-After': '2' },
  ),
  rebuilding: type(503, 'a rebuild is running; the snapshot before it is served', 'a rebuild is running', {
    'Retry-After': '5',
  }),
  search_unavailable: type(
    503,
    'the search engine does not answer at the moment',
    'Elasticsearch, or for a rebuild Redis, does not answer',
    { 'Retry-After': '2' },
  ),
} as const satisfies Record<string, ProblemType>;

export type ProblemCode = keyof typeof PROBLEMS;

interface ProblemOptions {
  /** What was wrong, in place of the default text. It must not name hosts, stacks or engine queries. */
  detail?: string;
  /** Beside or in place of those of the table. */
  headers?: Record<string, string>;
  /** Members beside the standard ones (RFC 9457, section 3.2). */
  members?: Record<string, unknown>;
  /** For the log only. */
  cause?: unknown;
}

/** A response that is an error: thrown by middleware and handlers, written by the error handler. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The response body. */
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

/** The header with the time after which a retry may succeed. */
export function retryAfter(seconds: number): Record<string, string> {
  return { 'Retry-After': String(seconds) };
}
