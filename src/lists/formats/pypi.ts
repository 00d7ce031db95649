import { canonicalName } from '../../util/name-rule.js';
import { percentDecoded } from '../../util/decode.js';
import { quote } from '../../util/reason-text.js';
import { DatasetError } from '../fetch/dataset-error.js';
import { peek } from '../fetch/decompress.js';
import { InterruptedError, type Documents } from '../fetch/documents.js';
import { readJson, type Containers } from '../readers/json-members.js';
import { NameTable } from './name-table.js';
import { isObject, type Format, type Item, type ListedPackage } from './list-format.js';

/** The headers of pip, which every server supports. */
const HEADERS = {
  Accept: 'application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.1, text/html;q=0.01',
  'Accept-Encoding': 'gzip',
};

/** If the text of a link has this number of characters or more, further text is ignored. Names are shorter. */
const MAX_TEXT = 1024;

/**
 * The root of a Simple index, in JSON (PEP 691; PEP 700 adds nothing to the root) or HTML (PEP 503). Names that are
 * equal after normalisation (PEP 503) are one project, which gets the first spelling. Some servers reject requests that
 * accept only JSON (the status varies), or send HTML with any content type. HTML pages may also have links that do not
 * lead to a project. A mirror is often a plain folder of a web server. The folder listing is then the index.
 */
export const pypi: Format = {
  place: (at) => (typeof at === 'number' ? `projects[${at}]` : at),
  async *read(documents: Documents): AsyncGenerator<Item[]> {
    const document = await documents.open(documents.urls[0], '', HEADERS);
    const { start, chunks } = await peek(document.text());
    const projects = await NameTable.create();
    const isNew = ({ name }: ListedPackage) => {
      const { size } = projects;
      if (typeof name === 'string') projects.add(canonicalName('pypi', name));
      return typeof name !== 'string' || projects.size > size;
    };
    const first = /[^\s\uFEFF]/.exec(start.toString())?.[0];
    const batches = first === '<' ? readHtml(chunks, document.origin.address) : readProjects(chunks);
    for await (const items of batches) yield items.filter(isNew);
  },
};

async function* readProjects(source: AsyncIterable<Buffer>): AsyncGenerator<ListedPackage[]> {
  const containers: Containers = new Map();
  let version: unknown;
  for await (const members of readJson(source, ['meta.api-version', 'projects.*'], containers)) {
    const projects = members.filter(({ parent }) => parent === 'projects');
    version ??= members.find(({ parent }) => parent === 'meta')?.value;
    yield projects.map(({ key: at, value, isLossy }) => {
      return { at, name: isObject(value) ? value['name'] : undefined, isLossy };
    });
  }
  if (typeof version !== 'string' || !/^1\.\d+$/.test(version) || containers.get('projects') !== 'array') {
    throw new DatasetError('expected a Simple index: `meta.api-version` 1.x and an array `projects`');
  }
}

/** @param address of the page. */
async function* readHtml(source: AsyncIterable<Buffer>, address: string): AsyncGenerator<ListedPackage[]> {
  const page = new URL(address);
  let folders: ListedPackage[] = [];
  let hasFolders = false;
  /**
   * Names of links that do not lead to folders. They are projects if no project has a folder. Otherwise, they are
   * files.
   */
  const others = await NameTable.create();
  /** The first link to a folder whose text is not the name of the folder, for the error message. */
  let unnamed: string | undefined;
  let link: { path: string; text: string } | undefined;
  let links = 0;
  const toItem = (at: number, name: string) => ({ at: `link ${at}`, name, isLossy: true });
  const use = ({ path, text }: { path: string; text: string }) => {
    links++;
    const isFolder = path.endsWith('/');
    const isAbove = isFolder && [page.href, page.pathname].some((above) => above.startsWith(path));
    if (isAbove) return;
    const name = nameOf(text.trim(), lastSegment(path));
    if (name === undefined) {
      if (isFolder && isIn(page, path)) unnamed ??= `${quote(path)} is ${quote(text.trim())}`;
    } else if (isFolder) folders.push(toItem(links, name));
    else if (!hasFolders) others.add(name, links);
  };
  const { Parser } = await import('htmlparser2');
  const parser = new Parser({
    onopentag: (tag, { href = '' }) => {
      if (tag === 'a') link = { path: href.replace(/[?#].*$/s, ''), text: '' };
    },
    ontext: (text) => {
      if (link !== undefined && link.text.length < MAX_TEXT) link.text += text;
    },
    onclosetag: (tag) => {
      if (tag !== 'a' || link === undefined) return;
      use(link);
      link = undefined;
    },
  });
  const decoder = new TextDecoder();
  let bytes = 0;
  let characters = 0;
  for await (const chunk of source) {
    const html = decoder.decode(chunk, { stream: true });
    characters += html.length;
    parser.write(html);
    bytes += chunk.length;
    hasFolders ||= folders.length > 0;
    yield folders;
    folders = [];
  }
  const isInLink = link !== undefined;
  parser.end();
  if (isInLink || parser.endIndex < characters)
    throw new InterruptedError(`the page is cut off after byte ${bytes}, within a tag or a link`);
  if (hasFolders) return;
  if (unnamed !== undefined)
    throw new DatasetError(`the text of no link to a folder is the name of the folder: that of ${unnamed}`);
  if (others.size === 0)
    throw new DatasetError('expected a Simple index, but the page has no link to a project');
  yield* others.map((other) => toItem(others.numberAt(other), others.nameAt(other)));
}

/** The suffix of folders and symbolic links in folder listings, and a long name that nginx or Apache has shortened. */
const LISTING_SUFFIX = /[/@]$/;
const SHORTENED = /^(.+)\.\.>$/;

/** @returns the name of the linked project; undefined unless the text of the link is this name, whole or shortened. */
function nameOf(text: string, segment: string): string | undefined {
  const name = text.replace(LISTING_SUFFIX, '');
  if (name !== '' && canonicalName('pypi', name) === canonicalName('pypi', segment)) return name;
  const [, start] = SHORTENED.exec(text) ?? [];
  return start !== undefined && segment.startsWith(start) ? segment : undefined;
}

/** Whether a path leads to a subfolder of the page's folder. */
function isIn(page: URL, path: string): boolean {
  const { href: folder } = new URL('.', page);
  const href = URL.canParse(path, folder) ? new URL(path, folder).href : '';
  return href.startsWith(folder) && /^[^/]+\/$/.test(href.slice(folder.length));
}

/** The last segment of the path of a link, decoded. Empty for `./` and `../`. */
function lastSegment(path: string): string {
  const segment = /([^/]*)\/*$/.exec(path.replace(/(^|\/)\.\.?\/*$/, ''))?.[1] ?? '';
  return percentDecoded(segment) ?? segment;
}
