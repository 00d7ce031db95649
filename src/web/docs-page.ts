import { byId, element } from './dom.js';

/** The parts of the OpenAPI document that are shown. */
interface Document {
  info: { description: string };
  paths: Record<string, { get: Operation }>;
}

interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  parameters?: Parameter[];
  responses: Record<string, Response>;
}

interface Parameter {
  name: string;
  in: 'path' | 'query';
  required: boolean;
  description?: string;
  schema: { type?: string; default?: string | number; examples?: string[] };
}

interface Response {
  description: string;
  headers?: Record<string, { description: string }>;
  content: Record<string, { example?: unknown; examples?: Record<string, { value: unknown }> }>;
}

/** Parameters whose input is masked. */
const SECRETS = ['secret'];

async function showDocument(): Promise<void> {
  const { info, paths } = (await (await fetch('openapi.json')).json()) as Document;
  byId('about').replaceChildren(...prose(info.description));
  const operations = byId('operations');
  operations.replaceChildren(...Object.entries(paths).map(([path, { get }]) => sectionOf(path, get)));
  operations.ariaBusy = 'false';
}

function sectionOf(path: string, operation: Operation): HTMLElement {
  const { operationId, summary, description, responses } = operation;
  return element(
    'section',
    { class: 'operation', id: operationId, 'aria-labelledby': `${operationId}-title` },
    element('h2', { id: `${operationId}-title` }, element('code', {}, `GET ${path}`)),
    element('p', {}, ...prose(summary), '.'),
    ...(description === undefined ? [] : [element('p', {}, ...prose(description))]),
    formOf(path, operation),
    element(
      'details',
      {},
      element('summary', {}, 'Responses'),
      element('dl', {}, ...Object.entries(responses).flatMap(([status, one]) => answerOf(path, status, one))),
    ),
  );
}

/** A form to try a request, and the result. */
function formOf(path: string, { operationId, parameters = [] }: Operation): HTMLElement {
  const inputs = parameters.map((parameter) => ({ parameter, input: inputOf(operationId, parameter) }));
  const output = element('div', { role: 'status' });
  const form = element(
    'form',
    { 'aria-label': `Try ${path}` },
    ...inputs.flatMap(({ parameter, input }) => [labelOf(parameter, input), input]),
    element('button', { type: 'submit' }, 'Try it'),
  );
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void request(addressOf(path, inputs), output);
  });
  return element('div', {}, form, output);
}

interface Field {
  parameter: Parameter;
  input: HTMLInputElement;
}

/** The URL of the request, relative to the page. */
function addressOf(path: string, fields: readonly Field[]): string {
  let address = path.slice(1);
  const search = new URLSearchParams();
  for (const { parameter, input } of fields) {
    const { name, schema } = parameter;
    if (parameter.in === 'path')
      address = address.replace(`{${name}}`, () => encodeURIComponent(input.value));
    else {
      // Several values of a repeatable parameter are separated by spaces.
      const values = schema.type === 'array' ? input.value.split(' ') : [input.value];
      for (const value of values) if (value !== '') search.append(name, value);
    }
  }
  return search.size === 0 ? address : `${address}?${search.toString()}`;
}

function inputOf(operationId: string, { name, required, schema }: Parameter): HTMLInputElement {
  const input = element('input', { id: `${operationId}-${name}`, name, autocomplete: 'off' });
  input.type = SECRETS.includes(name) ? 'password' : 'text';
  if (required) input.value = schema.examples?.[0] ?? '';
  else input.placeholder = String(schema.default ?? '');
  return input;
}

function labelOf({ name, required, description }: Parameter, input: HTMLInputElement): HTMLElement {
  const more = description === undefined ? [] : [': ', ...prose(description)];
  return element(
    'label',
    { for: input.id },
    element('code', {}, name),
    required ? ' (required)' : '',
    ...more,
  );
}

async function request(path: string, output: HTMLElement): Promise<void> {
  try {
    const response = await fetch(path);
    const body = await response.text();
    const head = [
      `HTTP ${response.status}`,
      ...[...response.headers].map(([name, value]) => `${name}: ${value}`),
    ];
    output.replaceChildren(block('Response head', head.join('\n')), block('Response body', pretty(body)));
  } catch {
    output.replaceChildren(element('p', {}, 'The service cannot be reached.'));
  }
}

/** Indented JSON, or the unchanged text if it is not JSON. */
function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function answerOf(
  path: string,
  status: string,
  { description, headers = {}, content }: Response,
): HTMLElement[] {
  const examples = Object.values(content).flatMap(({ example, examples }) =>
    examples === undefined ? [example] : Object.values(examples).map(({ value }) => value),
  );
  return [
    element('dt', {}, element('code', {}, status), ' ', ...prose(description)),
    ...Object.entries(headers).map(([name, header]) =>
      element('dd', {}, element('code', {}, name), ' ', ...prose(header.description)),
    ),
    ...examples.map((example) =>
      element('dd', {}, block(`Example of a ${status} of ${path}`, JSON.stringify(example, null, 2))),
    ),
  ];
}

/** A block that scrolls if lines are wider than the page, and is therefore focusable. */
function block(label: string, text: string): HTMLElement {
  return element('pre', { tabindex: '0', role: 'group', 'aria-label': label }, text);
}

/** Renders text with code between backticks, as in Markdown. */
function prose(text: string): (Node | string)[] {
  return text.split('`').map((part, i) => (i % 2 === 1 ? element('code', {}, part) : part));
}

showDocument().catch((error: unknown) => {
  byId('about').textContent = 'The API description could not be loaded. Reload the page to try again.';
  byId('operations').ariaBusy = 'false';
  console.warn(error);
});
