import * as z from 'zod';
import { Problem, PROBLEMS, type ProblemCode } from '../problems/problem.js';
import { REQUEST_ID } from '../request/request-context.js';
import type { ErrorForm, ResponseDescription } from './document.js';

export type Json = Record<string, unknown>;

/** The headers that the OpenAPI document describes. Scripts of any origin may read them. */
const HEADERS = {
  [REQUEST_ID]: 'Identifies the request in logs. The id of a client (1 to 64 of `A-Za-z0-9_.:-`) is kept.',
  'RateLimit-Policy': 'The rate limit and its name: `q` points in `w` seconds (IETF draft), if there is one.',
  RateLimit: '`r` points remain; the limit resets in `t` seconds. Most requests cost one point.',
  'Retry-After': 'Seconds until a retry may succeed.',
  'X-Snapshot': 'The id of the snapshot that served the response.',
  'X-Snapshot-Changes':
    'How many packages differ from the previous snapshot, if it was compared: `added=123, removed=45, updated=6`.',
  'X-Results-Truncated': '`true` if more names match.',
  Link: 'Pages of the same snapshot, if they exist (RFC 8288): `next`, and for `/browse` also `first`, `prev` and `last`.',
  'Content-Location': 'The package by its listed name, if that differs.',
  'Last-Modified': 'When the snapshot was taken.',
  'Content-Disposition': 'A file name with registry and snapshot.',
};

export type HeaderName = keyof typeof HEADERS;

/** Additional members of problems, by their code. */
export type ProblemMembers = Partial<Record<ProblemCode, { shape: z.ZodRawShape; example: Json }>>;

/** The schema of an object in responses. @param id name of the schema in the document. */
export function component<Shape extends z.ZodRawShape>(id: string, shape: Shape) {
  return z.strictObject(shape).meta({ id });
}

/** The parts that operations share. Generated clients have one type for each shared schema. */
export class OpenApiComponents {
  readonly parts = {
    schemas: {} as Json,
    parameters: {} as Json,
    headers: {} as Json,
    responses: {} as Json,
    examples: {} as Json,
  };

  constructor(private readonly members: ProblemMembers) {}

  /** A schema as JSON Schema. Schemas with an `id` (`meta`) are components. */
  schema(schema: z.ZodType, io: 'input' | 'output' = 'output'): Json {
    const text = JSON.stringify(z.toJSONSchema(z.object({ schema }), { io, override }));
    const { properties, $defs } = JSON.parse(text.replaceAll('#/$defs/', '#/components/schemas/')) as Json;
    Object.assign(this.parts.schemas, $defs);
    return (properties as { schema: Json }).schema;
  }

  /** Path and query parameters. A parameter with `component` in its `meta` becomes a shared component. */
  params(path: string, params: z.ZodObject): Json[] {
    const { properties, required = [] } = this.schema(params, 'input') as {
      properties: Record<string, Json>;
      required?: string[];
    };
    return Object.entries(properties).map(([name, { description, component: shared, ...schema }]) => {
      const where = path.includes(`{${name}}`) ? 'path' : 'query';
      const isRequired = required.includes(name) && { required: true };
      const param = { name, in: where, ...isRequired, description, schema };
      return typeof shared === 'string' ? this.#add('parameters', shared, param) : param;
    });
  }

  /** Headers of a response. @param limited whether the endpoint has a rate limit. */
  headers(limited: boolean, special: readonly HeaderName[] = []): Json {
    const limits = limited ? (['RateLimit-Policy', 'RateLimit'] as const) : [];
    const names: HeaderName[] = [REQUEST_ID, ...limits, ...special];
    const described = names.map((name) => {
      const header = { description: HEADERS[name], schema: { type: 'string' } };
      return [name, this.#add('headers', name, header)];
    });
    return Object.fromEntries(described) as Json;
  }

  /** The content of a response or a request, by its type. */
  content(body: Omit<ResponseDescription, 'description'>): Json {
    const { contentType = 'application/json', schema, example, otherTypes } = body;
    const examples = Object.entries({ [contentType]: example, ...otherTypes });
    return Object.fromEntries(
      examples.map(([type, one]) => [type, { schema: this.schema(schema), example: one }]),
    );
  }

  /**
   * Responses that report problems, by status. Several problems may share a status.
   * @param form of the bodies, if they are not `application/problem+json`.
   */
  problems(all: readonly ProblemCode[], form?: ErrorForm['body']): Json {
    const statuses = new Set(all.map((code) => PROBLEMS[code].status));
    const described = Array.from(statuses, (status) => {
      const codes = all.filter((code) => PROBLEMS[code].status === status);
      return [status, this.#problemResponse(status, codes, form)];
    });
    return Object.fromEntries(described) as Json;
  }

  #problemResponse(status: number, codes: readonly ProblemCode[], form: ErrorForm['body']): Json {
    const name = `${codes.map(pascalCase).join('Or')}${form?.schema.meta()?.id ?? ''}`;
    // An earlier endpoint with the same problems has already added this response.
    if (name in this.parts.responses) return { $ref: `#/components/responses/${name}` };
    return this.#add('responses', name, {
      description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code].description}`).join('; '),
      headers: this.headers(true, [
        ...(status === 429 || status === 503 ? (['Retry-After'] as const) : []),
        ...(codes.includes('unknown_package') ? (['X-Snapshot'] as const) : []),
      ]),
      content: form
        ? this.content(form)
        : { 'application/problem+json': this.#problemContent(status, codes) },
    });
  }

  #problemContent(status: number, codes: readonly ProblemCode[]): Json {
    const examples = codes.map((code) => {
      const value = { ...new Problem(code).body, ...this.members[code]?.example };
      return [code, this.#add('examples', code, { value })];
    });
    return {
      schema: this.schema(problemSchema(status, this.members)),
      examples: Object.fromEntries(examples) as Json,
    };
  }

  #add(kind: keyof OpenApiComponents['parts'], name: string, part: Json): Json {
    this.parts[kind][name] = part;
    return { $ref: `#/components/${kind}/${name}` };
  }
}

/** The schema of all problems with a status. Clients tell them apart by `code`. */
function problemSchema(status: number, members: ProblemMembers) {
  const codes = (Object.keys(PROBLEMS) as ProblemCode[]).filter((code) => PROBLEMS[code].status === status);
  const additional = codes.map((code) => z.object(members[code]?.shape ?? {}).partial().shape);
  return component(`Problem${status}`, {
    type: z.literal('about:blank'),
    title: z.string(),
    status: z.literal(status),
    detail: z.string().meta({ description: 'For people: names the parameter and the fault.' }),
    code: z.enum(codes).meta({ description: 'For programs. Which members follow depends on it.' }),
    ...(Object.assign({}, ...additional) as z.ZodRawShape),
  });
}

function pascalCase(code: ProblemCode): string {
  return code.replace(/(?:^|_)(.)/g, (_match, letter: string) => letter.toUpperCase());
}

const MAX_INT32 = 2 ** 31 - 1;

const override: z.core.ToJSONSchemaContext['override'] = ({ zodSchema, jsonSchema: part }) => {
  // A pattern is redundant beside a format. A numeric query parameter is described as an integer, so the pattern of its
  // string is dropped.
  if (part.type === 'integer' || part.format !== undefined) delete part.pattern;
  if (part.type === 'integer' && (part.maximum ?? Infinity) > MAX_INT32) {
    // Without a format, generated clients use 32 bits.
    part.format = 'int64';
    // Zod adds a maximum to every integer, even if the schema has none.
    if (zodSchema instanceof z.ZodNumber) delete part.maximum;
  }
  // Keys of JSON are strings.
  delete part.propertyNames;
  if (zodSchema instanceof z.ZodDefault) part.default = zodSchema.def.defaultValue;
};
