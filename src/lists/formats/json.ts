import { createHash } from 'node:crypto';
import type { JsonPaths } from '../../config/json-paths.js';
import { OPTIONAL_FIELDS, withOptional, type OptionalField } from '../../snapshot/package-fields.js';
import { DatasetError } from '../fetch/dataset-error.js';
import type { Document, Documents } from '../fetch/documents.js';
import { DOT, JSON_HEADERS, readJson, type Containers, type JsonMember } from '../readers/json-members.js';
import { textOf } from './package-check.js';
import { NameTable } from './name-table.js';
import { isObject, type Format, type Item, type ListedPackage, type ReadOptions } from './list-format.js';

/** Maximum number of pages of a list. */
export const MAX_PAGES = 100_000;

/**
 * One cause is `next=token` instead of `next=parameter:token` in DATASET_JSON: the token is then read as an address.
 */
const REPEATED_PAGE = 'the next page is one that was read before: check `next` in DATASET_JSON';

/** A link in a `Link` header (RFC 8288), with its parameters. */
const LINK = /<([^>]*)>((?:[^<"]|"[^"]*")*)/g;
const IS_NEXT = /;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\s*(?:[;,]|$))/i;

interface Progress {
  /** Fields whose paths have matched no item so far. */
  absent: Set<'version' | OptionalField>;
  /** Number of the current page. */
  page: number;
  /** With `pages`: a digest of the names and versions of the last complete page. */
  digest: string;
}

/** @param maxPages maximum number of pages; tests use a lower maximum than `json`. */
export function jsonFormat(maxPages: number): Format {
  return {
    place: (at) => `item ${at}`,
    replaces: () => true,
    async *read(documents: Documents, { jsonPaths: paths }: ReadOptions): AsyncGenerator<Item[]> {
      const pages = await NameTable.create();
      const absent = new Set((['version', ...OPTIONAL_FIELDS] as const).filter((key) => key in paths));
      const progress: Progress = { absent, page: 1, digest: '' };
      const [first] = documents.urls;
      let next: string | undefined =
        paths.pages === undefined ? first : withParameter(first, paths.pages.join('.'), '1');
      for (; next !== undefined; progress.page++) {
        const url: string = next;
        if (pages.find(url) !== 0) throw new DatasetError(REPEATED_PAGE);
        pages.add(url);
        if (progress.page > maxPages) throw new DatasetError(`there are more than ${maxPages} pages`);
        next = yield* documents.reread(() => readPage(documents, url, paths, progress));
      }
      documents.close();
      for (const key of absent) {
        throw new DatasetError(`no item has \`${paths[key]?.join('.')}\` (DATASET_JSON)`);
      }
    },
  };
}

/**
 * Any JSON, such as the lists of package APIs (GitLab, Gitea, Artifactory, Nexus): `DATASET_JSON` has the paths of the
 * items and their fields. The address of the next page is the value of a member, is built from a token in a member, is
 * in `Link` (RFC 8288), or has the number of the page. If packages are published while the pages are read, a package
 * may appear on two pages; the last entry wins.
 */
export const json = jsonFormat(MAX_PAGES);

/** Reads the items of a page. @returns the address of the next page, if there is one. */
async function* readPage(
  documents: Documents,
  url: string,
  paths: JsonPaths,
  progress: Progress,
): AsyncGenerator<ListedPackage[], string | undefined> {
  const document = await documents.open(url, `page ${progress.page}`, JSON_HEADERS);
  const parents = spellings(paths.items);
  const nextPaths = paths.next === undefined ? [] : spellings(paths.next.path);
  const containers: Containers = new Map();
  /** In the order of `nextPaths`. */
  const nextValues: unknown[] = [];
  /** The path of the items that were read. A better path may follow in the document. */
  let used: string | undefined;
  let count = 0;
  const hash = createHash('sha256');
  const wanted = [...parents.map((parent) => (parent === '' ? '*' : `${parent}.*`)), ...nextPaths];
  for await (const members of readJson(document.text(), wanted, containers)) {
    const items: ListedPackage[] = [];
    const best = parents.find((parent) => containers.has(parent));
    for (const member of members) {
      const rank = nextPaths.indexOf(pathOf(member));
      if (rank !== -1) nextValues[rank] = member.value;
      else if (member.parent === best) items.push(toPackage(member, paths));
    }
    if (items.length > 0) used ??= best;
    for (const key of progress.absent)
      if (items.some((item) => item[key] !== undefined)) progress.absent.delete(key);
    if (paths.pages !== undefined)
      for (const { name, version } of items) hash.update(JSON.stringify([name, version]));
    count += items.length;
    yield items;
  }
  const best = parents.find((parent) => containers.has(parent));
  if (best === undefined)
    throw new DatasetError(`expected an array or map at \`${paths.items.join('.')}\` (DATASET_JSON)`);
  if (used !== undefined && used !== best)
    throw new DatasetError(`two members match \`${paths.items.join('.')}\` (DATASET_JSON)`);
  const next = nextValues.find((value) => value !== undefined);
  const following = nextPage(documents, document, url, paths, next);
  if (following !== undefined || paths.pages === undefined || count === 0) return following;
  const parameter = paths.pages.join('.');
  const digest = hash.digest('hex');
  if (digest === progress.digest)
    throw new DatasetError(
      `it repeats the page before: the server may ignore \`${parameter}\` (DATASET_JSON)`,
    );
  progress.digest = digest;
  return withParameter(documents.urls[0], parameter, String(progress.page + 1));
}

function withParameter(url: string, parameter: string, value: string): string {
  const page = new URL(url);
  page.searchParams.set(parameter, value);
  return page.href;
}

/** All paths in which a member's own name has some of the dots. Those with long names first come first. */
function spellings([first = '', ...names]: readonly string[]): string[] {
  return names.reduce(
    (paths, name) => paths.flatMap((path) => [`${path}${DOT}${name}`, `${path}.${name}`]),
    [first],
  );
}

function pathOf({ parent, key }: JsonMember): string {
  const name = String(key).replaceAll('.', DOT);
  return parent === '' ? name : `${parent}.${name}`;
}

/** @throws {DatasetError} if an item of an array is an object, and `paths.name` is undefined. */
function toPackage({ key: at, value, isLossy }: JsonMember, paths: JsonPaths): ListedPackage {
  const isInMap = typeof at === 'string';
  if (paths.name === undefined && !isInMap && isObject(value)) {
    throw new DatasetError(`item ${at} is not a string: say where its name is (DATASET_JSON=name=…)`);
  }
  const find = (path: readonly string[] | undefined) => path && memberAt(value, path);
  const own = isInMap ? at : value;
  const name = paths.name === undefined ? own : find(paths.name);
  return withOptional<ListedPackage>({ at, name, version: find(paths.version), isLossy }, (field) =>
    find(paths[field]),
  );
}

/** The value at a path. A name of a member may have some of the dots; the longest name wins. */
function memberAt(value: unknown, path: readonly string[]): unknown {
  if (path.length === 0 || !isObject(value)) return path.length === 0 ? value : undefined;
  for (let count = path.length; count > 0; count--) {
    const name = path.slice(0, count).join('.');
    const found = Object.hasOwn(value, name) ? memberAt(value[name], path.slice(count)) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** @param member the value at the path in `next`; undefined if there is none. */
function nextPage(
  documents: Documents,
  document: Document,
  url: string,
  { next }: JsonPaths,
  member: unknown,
): string | undefined {
  const text = member === false ? '' : textOf(member, next?.path.join('.') ?? '');
  if (text !== '') {
    if (next?.parameter === undefined) return documents.resolve(text, document);
    return withParameter(url, next.parameter, text);
  }
  for (const [, reference = '', parameters = ''] of document.origin.link?.matchAll(LINK) ?? []) {
    if (IS_NEXT.test(parameters)) return documents.resolve(reference, document);
  }
  return undefined;
}
