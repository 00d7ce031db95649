import type { JsonPaths } from '../../../config/json-paths.js';
import { DatasetError } from '../dataset-error.js';
import type { Document } from '../documents/document.js';
import type { Documents } from '../documents/documents.js';
import { JSON_HEADERS, readJson, type Containers } from '../documents/json.js';
import { NameTable } from '../documents/name-table.js';
import type { Format, ListedPackage } from './format.js';
import { isObject, nameIn, textIn } from './members.js';
import { packagesOf } from './packages-of.js';

/** Maximum number of pages, by the contract. */
const MAX_PAGES = 100_000;

/** A token in `next` without a parameter is taken for an address. */
const REPEATED_PAGE = 'the next page is one that was read before: check `next` in DATASET_JSON';

/** One of the links in a `Link` header (RFC 8288), with its parameters. */
const LINK = /<([^>]*)>((?:[^<"]|"[^"]*")*)/g;
const IS_NEXT = /;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\s*(?:[;,]|$))/i;

/**
 * Any JSON, such as the lists of package APIs (GitLab, Gitea, Artifactory, Nexus): `DATASET_JSON` says where things are. Further
 * pages are named by a member, by a token in a member, or by `Link` (RFC 8288). If packages are published while the pages are
 * read, one of them appears on two pages; the last one counts.
 */
export const json: Format = {
  columns: ['version', 'weight'],
  async *read(documents: Documents, paths: JsonPaths): AsyncGenerator<ListedPackage[]> {
    const packages = await NameTable.create();
    const pages = await NameTable.create();
    let url: string | undefined = documents.urls[0];
    for (let page = 1; url !== undefined; page++) {
      if (pages.add(url) < page - 1) throw new DatasetError(REPEATED_PAGE);
      if (page > MAX_PAGES) throw new DatasetError(`there are more than ${MAX_PAGES} pages`);
      const current: string = url;
      const read = () => readPage(documents, current, page, paths);
      for await (const { items, next } of documents.reread(read)) {
        for (const { name, version = '', weight = '' } of items) {
          packages.push(packages.add(name), `${weight}\n${version}`);
        }
        url = next;
      }
    }
    yield* packagesOf(packages, (position) => {
      const [weight, version] = split(packages.lastOf(position) ?? '');
      return { name: packages.nameAt(position), version, weight };
    });
  },
};

/** @returns the items in batches; the last batch has the address of the next page, if there is one. */
async function* readPage(
  documents: Documents,
  url: string,
  page: number,
  paths: JsonPaths,
): AsyncGenerator<{ items: ListedPackage[]; next?: string | undefined }> {
  const document = await documents.open(url, `page ${page}`, JSON_HEADERS);
  const parent = paths.items.join('.');
  const nextPath = paths.next?.path.join('.');
  const wanted = [...paths.items, '*'].join('.');
  const containers: Containers = new Map();
  let next: unknown;
  for await (const members of readJson(
    document.text(),
    nextPath === undefined ? [wanted] : [wanted, nextPath],
    containers,
  )) {
    const items: ListedPackage[] = [];
    for (const member of members) {
      const path = [member.parent, member.key].filter((part) => part !== '').join('.');
      if (path === nextPath) next = member.value;
      else if (member.parent === parent) items.push(toPackage(member, paths));
    }
    yield { items };
  }
  if (!containers.has(parent))
    throw new DatasetError(`expected an array or map at \`${parent}\` (DATASET_JSON)`);
  yield { items: [], next: nextPage(documents, document, url, paths, next) };
}

function toPackage(
  { key, value }: { key: string | number; value: unknown },
  paths: JsonPaths,
): ListedPackage {
  const own = typeof value === 'string' && typeof key === 'number' ? value : key;
  const place = `item ${key}`;
  if (paths.name === undefined && typeof own === 'number') {
    throw new DatasetError(`${place} is not a string: say where its name is (DATASET_JSON=name=…)`);
  }
  const name = paths.name === undefined ? own : at(value, paths.name);
  return {
    name: nameIn(name, paths.name === undefined ? `${place}: the name` : memberAt(place, paths.name)),
    version: paths.version && textIn(at(value, paths.version), memberAt(place, paths.version)),
    weight: paths.weight && textIn(at(value, paths.weight), memberAt(place, paths.weight)),
  };
}

function memberAt(place: string, path: readonly string[]): string {
  return `${place}: \`${path.join('.')}\` (DATASET_JSON)`;
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce((object, name) => (isObject(object) ? object[name] : undefined), value);
}

/** @param member the value at the path of `next`. */
function nextPage(
  documents: Documents,
  document: Document,
  url: string,
  { next }: JsonPaths,
  member: unknown,
): string | undefined {
  const text = textIn(member === false ? undefined : member, next?.path.join('.') ?? '');
  if (text !== undefined && text !== '') {
    if (next?.parameter === undefined) return documents.resolve(text, document);
    const page = new URL(url);
    page.searchParams.set(next.parameter, text);
    return page.href;
  }
  for (const [, reference = '', parameters = ''] of document.link?.matchAll(LINK) ?? []) {
    if (IS_NEXT.test(parameters)) return documents.resolve(reference, document);
  }
  return undefined;
}

function split(text: string): [weight: string, version: string] {
  const end = text.indexOf('\n');
  return [text.slice(0, end), text.slice(end + 1)];
}
