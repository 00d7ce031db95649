import type * as z from 'zod';
import { OpenApiComponents, type HeaderName, type Json, type ProblemMembers } from './components.js';
import { PROBLEMS, type Problem, type ProblemCode } from '../problems/problem.js';
import type { BodyResponse } from '../response/response.js';

/** A response other than a problem. */
export interface ResponseDescription {
  description: string;
  /** `application/json` by default. */
  contentType?: string;
  schema: z.ZodType;
  example: unknown;
  /** Other content types of the same schema, and their examples. */
  otherTypes?: Record<string, unknown>;
  /** Headers in addition to `X-Request-Id` and the rate-limit headers. */
  headers?: readonly HeaderName[];
}

/** The form of errors for a client that does not know problems (RFC 9457). */
export interface ErrorForm {
  /** The body of a response with the status of the problem. Without it, `response` of the operation includes errors. */
  body?: { schema: z.ZodType; example: unknown };
  respond: (problem: Problem) => BodyResponse;
}

const TAGS = {
  Search: 'Packages by a part of their name, by exact names, and by names that look alike.',
  Clients: 'The search commands of package managers.',
  Snapshot: 'All packages, page by page or as a file, and what has changed.',
  Service: 'Whether the service works, and with which data.',
  Access: 'Rate limits, and what needs a secret.',
};

/** An endpoint's part of the OpenAPI document. */
export interface Operation {
  /** Name of the operation in generated clients. */
  id: string;
  tag: keyof typeof TAGS;
  summary: string;
  description: string;
  /** The body of a request. An operation with a body is a POST. */
  call?: ResponseDescription;
  /** Schema that parses the path and query parameters. */
  params?: z.ZodObject;
  /** Status of `response`; 200 by default. */
  status?: number;
  response: ResponseDescription;
  /** Other responses that are not problems, by status. */
  otherResponses?: Record<number, ResponseDescription>;
  /** Descriptions of responses without a body, by status: Node sends them before a request reaches a route. */
  emptyResponses?: Record<number, string>;
  problems?: readonly ProblemCode[];
  /** By default, errors are problems. */
  errors?: ErrorForm;
  /** Additional members of problems. */
  members?: ProblemMembers;
}

/** The parts of an endpoint that the document describes. */
export interface DescribedEndpoint {
  operation: Operation;
  limit?: object;
}

/** Problems that any request can cause, on any path. */
const PROBLEMS_OF_ANY_REQUEST = ['not_found', 'method_not_allowed'] as const;

/** The OpenAPI 3.1 document of all endpoints. @param overview introduction, in Markdown. */
export function openApiDocument(
  overview: string,
  endpoints: Readonly<Record<string, DescribedEndpoint>>,
): Json {
  const members = Object.values(endpoints).map(({ operation }) => operation.members);
  const components = new OpenApiComponents(Object.assign({}, ...members) as ProblemMembers);
  const paths = Object.entries(endpoints).map(([path, endpoint]) => [
    path,
    { [endpoint.operation.call ? 'post' : 'get']: describe(path, endpoint, components) },
  ]);
  const always = PROBLEMS_OF_ANY_REQUEST.map((code) => `${PROBLEMS[code].status} \`${code}\``);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Package registry search',
      version: '1.0.0',
      description: `${overview} Any request may fail with ${always.join(', ')}.`,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // Relative to the document, because a proxy may add a path prefix.
    servers: [{ url: '.' }],
    security: [{}, { bypassToken: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: Object.fromEntries(paths) as Json,
    components: {
      securitySchemes: {
        bypassToken: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Bypass-Token',
          description: 'Skips the rate limits; see `/get-bypass`. An invalid token is ignored.',
        },
      },
      ...components.parts,
    },
  };
}

function describe(
  path: string,
  { operation, limit }: DescribedEndpoint,
  components: OpenApiComponents,
): Json {
  const { id, tag, summary, description, call, params, problems = [], errors } = operation;
  const { status = 200, response: success, otherResponses, emptyResponses = {} } = operation;
  const limited = limit !== undefined;
  const all = [...problems, ...(limited ? (['rate_limited'] as const) : []), 'internal' as const];
  const codes = errors && !errors.body ? [] : all;
  const described = Object.entries({ [status]: success, ...otherResponses }).map(([code, response]) => [
    code,
    {
      description: response.description,
      headers: components.headers(limited, response.headers),
      content: components.content(response),
    },
  ]);
  const empty = Object.entries(emptyResponses).map(([code, text]) => [code, { description: text }]);
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(params && { parameters: components.params(path, params) }),
    ...(call && {
      requestBody: { description: call.description, content: components.content(call) },
    }),
    responses: {
      ...components.problems(codes, errors?.body),
      ...(Object.fromEntries([...described, ...empty]) as Json),
    },
  };
}
