import { Parser } from 'htmlparser2';
import { DatasetError } from '../dataset-error.js';
import { peek } from '../documents/decompress.js';
import { InterruptedError } from '../documents/document.js';
import type { Documents } from '../documents/documents.js';
import { readJson, type Containers } from '../documents/json.js';
import { NameTable } from '../documents/name-table.js';
import type { Format, ListedPackage } from './format.js';
import { isObject, nameIn } from './members.js';

/** What pip asks for, so every server has an answer to it. */
const HEADERS = {
  Accept: 'application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.1, text/html;q=0.01',
  'Accept-Encoding': 'gzip',
};

/** How many bytes are searched for the first character. */
const START_BYTES = 1024;

/**
 * The root of a Simple index, in JSON (PEP 691; PEP 700 adds nothing to the root) or HTML (PEP 503). Names that are equal after
 * normalisation (PEP 503) are one project, in its first spelling. Real servers reject requests for JSON alone with any status, or
 * send HTML with any type. Their pages also have links that lead to no project.
 */
export const pypi: Format = {
  columns: [],
  async *read(documents: Documents): AsyncGenerator<ListedPackage[]> {
    const document = await documents.open(documents.urls[0], '', HEADERS);
    const { start, chunks } = await peek(document.text(), START_BYTES);
    const projects = await NameTable.create();
    const isNew = (name: string) => {
      const { size } = projects;
      return projects.add(normalise(name)) === size;
    };
    const first = /[^\s\uFEFF]/.exec(start.toString())?.[0];
    for await (const names of first === '<' ? readHtml(chunks) : readProjects(chunks)) {
      yield names.filter(isNew).map((name) => ({ name }));
    }
  },
};

async function* readProjects(source: AsyncIterable<Buffer>): AsyncGenerator<string[]> {
  const containers: Containers = new Map();
  let version: unknown;
  for await (const members of readJson(source, ['meta.api-version', 'projects.*'], containers)) {
    const projects = members.filter(({ parent }) => parent === 'projects');
    version ??= members.find(({ parent }) => parent === 'meta')?.value;
    yield projects.map(({ key, value }) =>
      nameIn(isObject(value) ? value['name'] : undefined, `projects[${key}].name`),
    );
  }
  if (typeof version !== 'string' || !/^1\.\d+$/.test(version) || containers.get('projects') !== 'array') {
    throw new DatasetError('expected a Simple index: `meta.api-version` 1.x and an array `projects`');
  }
}

async function* readHtml(source: AsyncIterable<Buffer>): AsyncGenerator<string[]> {
  let names: string[] = [];
  let link: { project: string; text: string } | undefined;
  let found = 0;
  const parser = new Parser({
    onopentag: (tag, { href = '' }) => {
      if (tag === 'a') link = { project: lastSegment(href), text: '' };
    },
    ontext: (text) => {
      if (link !== undefined) link.text += text;
    },
    onclosetag: (tag) => {
      if (tag !== 'a' || link === undefined) return;
      const name = link.text.trim();
      if (name !== '' && normalise(name) === normalise(link.project)) names.push(name);
      link = undefined;
    },
  });
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let bytes = 0;
  let characters = 0;
  for await (const chunk of source) {
    try {
      const html = decoder.decode(chunk, { stream: true });
      characters += html.length;
      parser.write(html);
    } catch (cause) {
      throw new DatasetError(`not valid UTF-8 after byte ${bytes}`, { cause });
    }
    bytes += chunk.length;
    found += names.length;
    yield names;
    names = [];
  }
  const isInLink = link !== undefined;
  parser.end();
  if (isInLink || parser.endIndex < characters)
    throw new InterruptedError(`the page is cut off after byte ${bytes}, within a tag or a link`);
  if (found === 0) throw new DatasetError('expected a Simple index, but the page has no link to a project');
}

/** The last segment of the path of a link, decoded. The parent folder has none. */
function lastSegment(href: string): string {
  const segment = /([^/]*)\/*$/.exec(href.replace(/[?#].*$/s, '').replace(/(^|\/)\.\.?\/*$/, ''))?.[1] ?? '';
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The form in which names are compared (PEP 503). */
export function normalise(name: string): string {
  return name.replace(/[-_.]+/g, '-').toLowerCase();
}
