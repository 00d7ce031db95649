import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'chai';
import type { TestResponse } from './service.js';

interface MediaType {
  schema: object;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

interface ResponseObject {
  headers: Record<string, unknown>;
  content: Record<string, MediaType>;
}

interface Document {
  paths: Record<string, { get: { responses: Record<string, ResponseObject> } }>;
  components: { schemas: { Problem: object } };
}

/** Statuses of paths and methods that are not in the document. */
const ANYWHERE = [404, 405];

/** Headers that a response may have only if the document says so. */
const SPECIAL_HEADERS = [
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

/** Compares responses with the service's own OpenAPI document. */
export class OpenApiContract {
  readonly #ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true });
  readonly #validators = new Map<object, ValidateFunction>();

  constructor(private readonly document: Document) {
    (addFormats as unknown as (ajv: Ajv2020) => void)(this.#ajv);
  }

  /** Fails if the response has a status, body or header that the document does not list. */
  check(method: string, path: string, answer: TestResponse): void {
    const { pathname } = new URL(path, 'http://any');
    const what = `${method} ${path.slice(0, 200)}: ${answer.status} ${answer.text.slice(0, 300)}`;
    expect(answer.headers.get('X-Request-Id'), what).to.match(/^[\w.:-]{1,64}$/);
    if (PAGE.test(pathname) && [200, 304].includes(answer.status)) {
      if (answer.status === 200) expect(answer.headers.get('Content-Type'), what).to.match(/^(text|image)\//);
      return;
    }
    const get = this.document.paths[templateOf(pathname)]?.get;
    const isPromised = get?.responses[String(answer.status)] !== undefined;
    if (get === undefined || (ANYWHERE.includes(answer.status) && !isPromised)) {
      expect(answer.status, what).to.be.oneOf([...ANYWHERE, 204]);
      if (answer.status !== 204) this.#checkBody(what, answer, this.document.components.schemas.Problem);
      return;
    }
    if (answer.status === 304) return;
    if (method === 'OPTIONS' && answer.status === 204) return;
    const response = get.responses[String(answer.status)];
    if (response === undefined) expect.fail(`undocumented status: ${what}`);
    const [type = ''] = (answer.headers.get('Content-Type') ?? '').split(';');
    const promised = Object.keys(response.content);
    expect(promised, what).to.include(type);
    for (const header of SPECIAL_HEADERS) {
      if (answer.headers.has(header)) expect(Object.keys(response.headers), what).to.include(header);
    }
    if (method !== 'HEAD') this.#checkBody(what, answer, response.content[type]?.schema ?? {});
  }

  /** Fails if an example does not match its schema, or is missing. */
  checkExamples(): void {
    for (const [path, { get }] of Object.entries(this.document.paths)) {
      for (const [status, { content }] of Object.entries(get.responses)) {
        for (const { schema, example, examples = { example: { value: example } } } of Object.values(
          content,
        )) {
          for (const { value } of Object.values(examples)) {
            this.#validate(`the example of ${status} at ${path}`, value, schema);
          }
        }
      }
    }
  }

  #checkBody(what: string, { text, body }: TestResponse, schema: object): void {
    if (text !== '') this.#validate(what, body, schema);
  }

  #validate(what: string, body: unknown, schema: object): void {
    let validate = this.#validators.get(schema);
    if (validate === undefined) this.#validators.set(schema, (validate = this.#ajv.compile(schema)));
    if (!validate(body)) expect.fail(`${this.#ajv.errorsText(validate.errors)} in ${what}`);
  }
}
