import { DatasetError } from '../dataset-error.js';
import type { Document } from '../documents/document.js';
import type { Documents } from '../documents/documents.js';
import { JSON_HEADERS, readJson, type Containers } from '../documents/json.js';
import { NameTable } from '../documents/name-table.js';
import type { Format, ListedPackage } from './format.js';
import { isObject, nameIn } from './members.js';
import { packagesOf } from './packages-of.js';

/** Lists of all names. */
const COMPLETE = ['packageNames', 'available-packages'];
/** Objects whose keys are names. */
const PARTIAL = ['packages', 'providers'];
/** Objects whose keys are the addresses of more of them. */
const INCLUDES = ['includes', 'provider-includes'];
/** Ways to ask for a package whose name is known. */
const LAZY = ['available-package-patterns', 'metadata-url', 'providers-lazy-url', 'providers-url'];

/** What a document of a repository has. */
interface Found {
  /** Names that are all there are. Undefined if there is no such list, or it is empty. */
  complete: NameTable | undefined;
  list: string | undefined;
  includes: string[];
  lazy: string[];
}

/**
 * The list of names of Packagist's API (`packageNames`), or a Composer repository, `packages.json`
 * (https://getcomposer.org/doc/05-repositories.md#composer). Satis writes `available-packages` and `includes`; GitLab, older
 * Packagist and WordPress mirrors write `provider-includes`, whose `%hash%` is a member of the value. PHP writes an empty object
 * as an array, and an array without some of its items as an object. As in Composer, empty members count as absent. A name appears
 * in several of them.
 */
export const packagist: Format = {
  columns: [],
  async *read(documents: Documents): AsyncGenerator<ListedPackage[]> {
    const partial = await NameTable.create();
    const root = await documents.open(documents.urls[0], '', JSON_HEADERS);
    const found = await readRepository(root, partial);
    if (found.complete !== undefined) yield* packagesOf(found.complete);
    else if (found.list !== undefined) yield* packagesOf(await readList(documents, root, found.list));
    else {
      await follow(documents, root, found.includes, partial);
      if (partial.size === 0 && found.lazy.length > 0) {
        throw new DatasetError(`the repository has no list of its packages, only ${found.lazy.join(', ')}`);
      }
      yield* packagesOf(partial);
    }
  },
};

async function readList(documents: Documents, root: Document, reference: string): Promise<NameTable> {
  // The list of Packagist has another origin than its repository. Only a file may name files.
  const isAbsolute = /^https?:\/\//.test(reference) && URL.canParse(reference);
  const url = isAbsolute ? reference : documents.resolve(reference, root);
  const document = await documents.open(url, 'list', JSON_HEADERS);
  const { complete } = await readRepository(document, await NameTable.create());
  if (complete === undefined) throw new DatasetError('expected names in `packageNames`');
  return complete;
}

/** Reads included files, and those that they include, each once. @param names gets their names. */
async function follow(
  documents: Documents,
  root: Document,
  includes: string[],
  names: NameTable,
): Promise<void> {
  const urls = new Set(includes.map((file) => documents.resolve(file, root)));
  let number = 1;
  // A set yields also what is added meanwhile.
  for (const url of urls) {
    const document = await documents.open(url, `included file ${number++}`, JSON_HEADERS);
    const { includes: further } = await readRepository(document, names);
    // They are relative to the repository, too.
    for (const file of further) urls.add(documents.resolve(file, root));
  }
}

/** @param partial gets the names of `packages` and `providers`. */
async function readRepository(document: Document, partial: NameTable): Promise<Found> {
  const found: Found = { complete: undefined, list: undefined, includes: [], lazy: [] };
  const containers: Containers = new Map();
  const lists = [...COMPLETE, ...PARTIAL, ...INCLUDES];
  const complete = await NameTable.create();
  for await (const members of readJson(
    document.text(),
    [...lists.map((name) => `${name}.*`), 'list', ...LAZY],
    containers,
  )) {
    for (const { parent, key, value } of members) {
      if (COMPLETE.includes(parent)) complete.add(nameIn(value, `${parent}[${key}]`));
      else if (PARTIAL.includes(parent)) partial.add(nameOf(key, value, parent));
      else if (INCLUDES.includes(parent))
        found.includes.push(includeOf(nameIn(key, `a key of \`${parent}\``), value));
      else if (key === 'list') found.list = value ? nameIn(value, key) : undefined;
      else found.lazy.push(String(key));
    }
  }
  if (complete.size > 0) found.complete = complete;
  const isRepository =
    lists.some((name) => containers.has(name)) || found.list !== undefined || found.lazy.length > 0;
  if (!isRepository)
    throw new DatasetError('expected `packageNames`, or the packages.json of a Composer repository');
  return found;
}

/** The name of a package, which is the key of its versions; if PHP had no keys, it is that in its first version. */
function nameOf(key: string | number, versions: unknown, parent: string): string {
  if (!/^\d+$/.test(String(key))) return nameIn(key, `a key of \`${parent}\``);
  const [version] = Object.values((versions ?? {}) as Record<string, unknown>);
  return nameIn(isObject(version) ? version['name'] : undefined, `the name in ${parent}[${key}]`);
}

function includeOf(file: string, value: unknown): string {
  const hash = isObject(value) ? value['sha256'] : undefined;
  return file.replaceAll('%hash%', typeof hash === 'string' ? hash : '');
}
