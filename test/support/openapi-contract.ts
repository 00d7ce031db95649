import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'chai';
import type { TestResponse } from './service.js';

interface MediaType {
  schema: object;
  example?: unknown;
  examples?: Record<string, { value: unknown } | Reference>;
}

interface Reference {
  $ref: string;
}

interface ResponseObject {
  headers: Record<string, unknown>;
  /** Missing if the response has no body. */
  content?: Record<string, MediaType>;
}

interface Document {
  paths: Record<string, { get?: Operation; post?: Operation }>;
}

interface Operation {
  parameters?: ({ schema: { examples?: unknown[] } } | Reference)[];
  requestBody?: { content: Record<string, MediaType> };
  responses: Record<string, ResponseObject | Reference>;
}

/** Statuses of paths and methods that are not in the document. */
const ANYWHERE = [404, 405];

/** Headers that a response may have only if the document says so. */
const SPECIAL_HEADERS = [
  'Content-Location',
  'Link',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'X-Results-Truncated',
  'X-Snapshot',
  'X-Snapshot-Changes',
];

/** Paths of the web pages, which the document does not describe. */
const PAGE = /^\/(docs|page\/[\w-]+\.(js|css|svg))?$/;

/** The path template of the document that matches a path. */
function templateOf(pathname: string): string {
  return pathname.startsWith('/packages/') ? '/packages/{name}' : pathname;
}

const contracts = new Map<string, OpenApiContract>();

/** The contract of a document, which is compiled once. @param json the document. */
export function contractOf(json: string): OpenApiContract {
  const known = contracts.get(json);
  if (known !== undefined) return known;
  const contract = new OpenApiContract(JSON.parse(json) as Document);
  contracts.set(json, contract);
  return contract;
}

// Shared by the documents of all registries, in which most schemas are equal: compiling one takes milliseconds.
const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true });
(addFormats as unknown as (ajv: Ajv2020) => void)(ajv);

/** Compiled schemas, by their JSON without references. */
const compiled = new Map<string, ValidateFunction>();

/** Compares responses with the service's own OpenAPI document. */
class OpenApiContract {
  readonly #validators = new Map<object, ValidateFunction>();

  constructor(private readonly document: Document) {}

  /** Fails if the response has a status, body or header that the document does not list, or lacks the body. */
  check(method: string, path: string, answer: TestResponse): void {
    const { pathname } = new URL(path, 'http://any');
    const { status, headers, text } = answer;
    const what = `${method} ${path.slice(0, 200)}: ${status} ${text.slice(0, 300)}`;
    expect(headers.get('X-Request-Id'), what).to.match(/^[\w.:-]{1,64}$/);
    const hasNoBody = method === 'HEAD' || status === 304 || (method === 'OPTIONS' && status === 204);
    expect(text === '', `${what}: an empty body`).to.equal(hasNoBody);
    const [type = ''] = (headers.get('Content-Type') ?? '').split(';');
    if (PAGE.test(pathname) && [200, 304].includes(status)) {
      if (status === 200) expect(type, what).to.match(/^(text|image)\//);
      return;
    }
    const response = this.#responsesOf(templateOf(pathname))[String(status)];
    if (response === undefined && ANYWHERE.includes(status)) {
      expect(type, what).to.equal('application/problem+json');
      if (!hasNoBody) {
        expect(answer.body, what).to.have.all.keys('type', 'title', 'status', 'detail', 'code');
        expect(answer.body, what).to.include({ type: 'about:blank', status });
      }
      return;
    }
    if (status === 304 || (hasNoBody && method !== 'HEAD')) return;
    if (response === undefined) expect.fail(`undocumented status: ${what}`);
    const { content = {} } = response;
    expect(Object.keys(content), what).to.include(type);
    const special = SPECIAL_HEADERS.filter((header) => headers.has(header));
    expect(Object.keys(response.headers), what).to.include.members(special);
    if (hasNoBody) return;
    const { schema = {}, examples } = content[type] ?? {};
    this.#validate(what, answer.body, schema);
    // The examples of problems show which of them have this status here.
    if (examples !== undefined) {
      expect(answer.body, what).to.include({ status });
      expect(Object.keys(examples), what).to.include(answer.body.code);
    }
  }

  /** Fails if an example does not match its schema, or is missing. */
  checkExamples(): void {
    for (const path of Object.keys(this.document.paths)) {
      const operation = this.#operationOf(path);
      for (const { schema, example } of Object.values(operation?.requestBody?.content ?? {}))
        this.#validate(`the example of a body for ${path}`, example, schema);
      for (const { schema } of (operation?.parameters ?? []).map((parameter) => this.#resolve(parameter))) {
        for (const example of schema.examples ?? [])
          this.#validate(`the example of a parameter at ${path}`, example, schema);
      }
      for (const [status, { content = {} }] of Object.entries(this.#responsesOf(path))) {
        for (const { schema, example, examples } of Object.values(content)) {
          for (const one of Object.values(examples ?? { example: { value: example } }))
            this.#validate(`the example of ${status} at ${path}`, this.#resolve(one).value, schema);
        }
      }
    }
  }

  #responsesOf(path: string): Record<string, ResponseObject> {
    const responses = Object.entries(this.#operationOf(path)?.responses ?? {});
    return Object.fromEntries(responses.map(([status, response]) => [status, this.#resolve(response)]));
  }

  #operationOf(path: string): Operation | undefined {
    const { get, post } = this.document.paths[path] ?? {};
    return get ?? post;
  }

  #resolve<Part extends object>(part: Part | Reference): Part {
    if (!('$ref' in part)) return part;
    const [, ...keys] = part.$ref.split('/');
    return keys.reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], this.document) as Part;
  }

  #validate(what: string, body: unknown, schema: object): void {
    let validate = this.#validators.get(schema);
    if (validate === undefined) {
      const json = this.#withoutReferences(schema);
      validate = compiled.get(json) ?? ajv.compile(JSON.parse(json) as object);
      compiled.set(json, validate);
      this.#validators.set(schema, validate);
    }
    if (!validate(body)) expect.fail(`${ajv.errorsText(validate.errors)} in ${what}`);
  }

  /** The JSON of a schema, with the schemas that it refers to in place of references. */
  #withoutReferences(schema: object): string {
    return JSON.stringify(schema, (_key, part: unknown) => {
      if (typeof part !== 'object' || part === null || !('$ref' in part)) return part;
      const { $ref, ...others } = part as Reference;
      return { ...others, allOf: [this.#resolve({ $ref })] };
    });
  }
}
