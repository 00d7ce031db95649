import { z } from 'zod';
import { Problem, PROBLEMS, type ProblemCode } from './problem.js';
import { REQUEST_ID } from '../request/request-context.js';

/** A response other than a problem. */
export interface ResponseDescription {
  description: string;
  /** `application/json` by default. */
  contentType?: string;
  /** Schema of the body. */
  schema: z.ZodType;
  example: unknown;
  /** Other content types of the same schema, and their examples. */
  otherTypes?: Record<string, unknown>;
  /** Descriptions of its special headers, by name. */
  headers?: Record<string, string>;
}

/** An endpoint's part of the OpenAPI document. */
export interface Operation {
  summary: string;
  description?: string;
  /** Parses its path and query parameters. */
  params?: z.ZodObject;
  responses: Record<number, ResponseDescription>;
  problems: readonly ProblemCode[];
  /** Descriptions of the special headers of a problem. */
  problemHeaders?: Partial<Record<ProblemCode, Record<string, string>>>;
  /** Additional members of a problem. */
  members?: Partial<Record<ProblemCode, { shape: z.ZodRawShape; example: Json }>>;
}

/** An endpoint, as far as the document describes it. */
export interface DescribedEndpoint {
  operation: Operation;
  /** Its rate limit, if any. */
  limit?: object;
}

/** Problems that any request can cause, on any path. */
const PROBLEMS_OF_ANY_REQUEST = [
  'malformed_request',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'expectation_failed',
  'headers_too_large',
] as const;

/** Headers of every response. */
const ANY_HEADERS = {
  [REQUEST_ID]:
    'Identifies the request in the logs. An id sent by the client (1 to 64 of `A-Za-z0-9_.:-`) is kept.',
};

const LIMIT_HEADERS = {
  'RateLimit-Policy': 'The rate limit and its name: `q` points in `w` seconds (IETF draft).',
  RateLimit: '`r` points remain; the limit resets in `t` seconds. Most requests cost one point.',
};

/** Headers of a 429 or 503. */
export const RETRY_HEADERS = { 'Retry-After': 'Seconds until a retry may succeed.' };

type Json = Record<string, unknown>;

/** The OpenAPI 3.1 document of all endpoints. */
export function openApiDocument(endpoints: Readonly<Record<string, DescribedEndpoint>>): Json {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Package registry search',
      version: '1.0.0',
      description:
        'Lists and searches a snapshot of all package names of a registry. HEAD works like GET, without a ' +
        'body. Errors are `application/problem+json` (RFC 9457) with a stable `code`. Any request may fail ' +
        `with ${PROBLEMS_OF_ANY_REQUEST.map((code) => `${PROBLEMS[code].status} \`${code}\``).join(', ')}.`,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // Relative to the document, because a proxy may add a path prefix.
    servers: [{ url: '.' }],
    security: [{}, { bypassToken: [] }],
    paths: Object.fromEntries(
      Object.entries(endpoints).map(([path, endpoint]) => [path, { get: describe(path, endpoint) }]),
    ),
    components: {
      securitySchemes: {
        bypassToken: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Bypass-Token',
          description: 'Skips the rate limits; see `/get-bypass`. An invalid token is ignored.',
        },
      },
      schemas: { Problem: jsonSchema(problemSchema(Object.keys(PROBLEMS) as ProblemCode[], {})) },
    },
  };
}

function describe(path: string, { operation, limit }: DescribedEndpoint): Json {
  const limited = limit !== undefined;
  const { summary, description, params, responses } = operation;
  const headers = limited ? LIMIT_HEADERS : {};
  const described = Object.entries(responses).map(([status, response]) => [
    status,
    {
      description: response.description,
      headers: describeHeaders({ ...headers, ...response.headers }),
      content: Object.fromEntries(
        Object.entries({
          [response.contentType ?? 'application/json']: response.example,
          ...response.otherTypes,
        }).map(([type, example]) => [type, { schema: jsonSchema(response.schema), example }]),
      ),
    },
  ]);
  return {
    operationId: path.slice(1).replace(/\W+(\w?)/g, (_match, letter: string) => letter.toUpperCase()),
    summary,
    ...(description === undefined ? {} : { description }),
    ...(params === undefined ? {} : { parameters: describeParams(path, params) }),
    responses: { ...describeProblems(operation, limited), ...(Object.fromEntries(described) as Json) },
  };
}

function describeParams(path: string, params: z.ZodObject): Json[] {
  const { properties = {}, required = [] } = jsonSchema(params, 'input') as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: path.includes(`{${name}}`) ? 'path' : 'query',
    required: required.includes(name),
    description,
    schema,
  }));
}

/** One response for each status, which several problems may share. */
function describeProblems(
  { problems, members = {}, problemHeaders = {} }: Operation,
  limited: boolean,
): Json {
  const codes = [
    ...new Set<ProblemCode>([...problems, ...(limited ? (['rate_limited'] as const) : []), 'internal']),
  ];
  const statuses = [...new Set(codes.map((code) => PROBLEMS[code].status))];
  const described = statuses.map((status) => {
    const shared = codes.filter((code) => PROBLEMS[code].status === status);
    const schemas = shared.map((code) => jsonSchema(problemSchema([code], members[code]?.shape ?? {})));
    const later = status === 429 || status === 503;
    return [
      status,
      {
        description: shared.map((code) => `\`${code}\`: ${PROBLEMS[code].description}`).join('; '),
        headers: describeHeaders({
          ...(limited ? LIMIT_HEADERS : {}),
          ...(later ? RETRY_HEADERS : {}),
          ...Object.fromEntries(shared.flatMap((code) => Object.entries(problemHeaders[code] ?? {}))),
        }),
        content: {
          'application/problem+json': {
            schema: schemas.length === 1 ? schemas[0] : { anyOf: schemas },
            examples: Object.fromEntries(
              shared.map((code) => [
                code,
                { value: { ...new Problem(code).body, ...members[code]?.example } },
              ]),
            ),
          },
        },
      },
    ];
  });
  return Object.fromEntries(described) as Json;
}

function problemSchema(codes: ProblemCode[], members: z.ZodRawShape): z.ZodType {
  const statuses = codes.map((code) => z.literal(PROBLEMS[code].status));
  return z.strictObject({
    type: z.literal('about:blank'),
    title: z.string(),
    status: statuses.length === 1 ? (statuses[0] as z.ZodLiteral<number>) : z.union(statuses),
    detail: z.string(),
    code: z.enum(codes),
    ...members,
  });
}

function describeHeaders(headers: Record<string, string>): Json {
  return Object.fromEntries(
    Object.entries({ ...ANY_HEADERS, ...headers }).map(([name, description]) => [
      name,
      { description, schema: { type: 'string' } },
    ]),
  );
}

const MAX_INT32 = 2 ** 31 - 1;

function jsonSchema(schema: z.ZodType, io: 'input' | 'output' = 'output'): Json {
  const described = z.toJSONSchema(schema, {
    io,
    override: ({ zodSchema, jsonSchema: part }) => {
      if (part.type === 'integer') {
        // Describes a numeric query parameter as a number, not as the string that is parsed.
        delete part.pattern;
        // Generated clients use 32 bits without it.
        if ((part.maximum ?? Infinity) > MAX_INT32) part.format = 'int64';
      }
      if (zodSchema instanceof z.ZodDefault) part.default = zodSchema.def.defaultValue;
    },
  }) as Json;
  // OpenAPI defines the dialect.
  delete described['$schema'];
  return described;
}
