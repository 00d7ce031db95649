import { canonicalName, type NameRule } from '../../util/name-rule.js';
import { DatasetError } from '../fetch/dataset-error.js';
import type { Document, Documents } from '../fetch/documents.js';
import { JSON_HEADERS, readJson, type Containers } from '../readers/json-members.js';
import { nameOf } from './package-check.js';
import { NameTable } from './name-table.js';
import { isObject, type Format, type Item, type ReadOptions } from './list-format.js';

/** Lists of all names. */
const COMPLETE = ['packageNames', 'available-packages'];
/** Objects whose keys are names. */
const PARTIAL = ['packages', 'providers'];
/** Objects whose keys are the addresses of further documents. */
const INCLUDES = ['includes', 'provider-includes'];
/** A repository with one of these members may have no list of names, because clients request its packages by name. */
const LAZY = ['available-package-patterns', 'metadata-url', 'providers-lazy-url', 'providers-url'];

/** The content of a document of a repository. */
interface Found {
  /** The complete list of names; empty if there is no such list. */
  complete: NameTable;
  list: string | undefined;
  includes: string[];
  lazy: string[];
}

/**
 * The list of names of Packagist's API (`packageNames`), or a Composer repository, `packages.json`
 * (https://getcomposer.org/doc/05-repositories.md#composer). Satis writes `available-packages` and `includes`. GitLab,
 * old versions of Packagist, and WordPress mirrors write `provider-includes`. In its keys, `%hash%` stands for the
 * member `sha256` of the value. PHP writes an empty object as an array, and an array with gaps as an object. As in
 * Composer, empty members count as absent. A name may appear in several members.
 */
export const packagist: Format = {
  place: (at) => (typeof at === 'number' ? `package ${at}` : at),
  async *read(documents: Documents, { nameRule }: ReadOptions): AsyncGenerator<Item[]> {
    const partial = await NameTable.create();
    const root = await documents.open(documents.urls[0], '', JSON_HEADERS);
    const found = yield* readRepository(root, partial, nameRule);
    if (found.complete.size > 0) yield* packagesOf(found.complete);
    else if (found.list !== undefined) yield* readList(documents, root, found.list, nameRule);
    else {
      yield* follow(documents, root, found.includes, partial, nameRule);
      if (partial.size === 0 && found.lazy.length > 0) {
        throw new DatasetError(`the repository has no list of its packages, only ${found.lazy.join(', ')}`);
      }
      documents.close();
      yield* packagesOf(partial);
    }
  },
};

function packagesOf(names: NameTable): Generator<Item[]> {
  let at = 0;
  return names.map((name) => ({ at: ++at, name: names.lastTextOf(name) ?? names.nameAt(name) }));
}

/** Adds a name. Its first spelling is stored as a text, unless it equals the canonical name. */
function addName(names: NameTable, name: string, rule: NameRule): void {
  const { size } = names;
  const canonical = canonicalName(rule, name);
  const address = names.add(canonical);
  if (names.size > size && name !== canonical) names.push(address, name);
}

async function* readList(
  documents: Documents,
  root: Document,
  reference: string,
  nameRule: NameRule,
): AsyncGenerator<Item[]> {
  // An http(s) address may have any origin: Packagist's list is not on the origin of its repository. `resolve` checks
  // all other addresses.
  const isAbsolute = /^https?:\/\//.test(reference) && URL.canParse(reference);
  const url = isAbsolute ? reference : documents.resolve(reference, root);
  const document = await documents.open(url, 'list', JSON_HEADERS);
  const { complete } = yield* readRepository(document, await NameTable.create(), nameRule);
  if (complete.size === 0) throw new DatasetError('expected names in `packageNames`');
  yield* packagesOf(complete);
}

/** Reads included files recursively, each once. @param names receives the names in them. */
async function* follow(
  documents: Documents,
  root: Document,
  includes: string[],
  names: NameTable,
  nameRule: NameRule,
): AsyncGenerator<Item[]> {
  const urls = new Set(includes.map((file) => documents.resolve(file, root)));
  let number = 1;
  // The iteration over a set includes items that are added meanwhile.
  for (const url of urls) {
    const document = await documents.open(url, `included file ${number++}`, JSON_HEADERS);
    const { includes: further } = yield* readRepository(document, names, nameRule);
    // Addresses in included files are also relative to the root document.
    for (const file of further) urls.add(documents.resolve(file, root));
  }
}

/**
 * Yields the values that are not names, although a name is expected.
 * @param partial receives the names in `packages` and `providers`.
 */
async function* readRepository(
  document: Document,
  partial: NameTable,
  nameRule: NameRule,
): AsyncGenerator<Item[], Found> {
  const complete = await NameTable.create();
  const found: Found = { complete, list: undefined, includes: [], lazy: [] };
  const containers: Containers = new Map();
  const lists = [...COMPLETE, ...PARTIAL, ...INCLUDES];
  const paths = [...lists.map((name) => `${name}.*`), 'list', ...LAZY];
  for await (const members of readJson(document.text(), paths, containers)) {
    const bad: Item[] = [];
    for (const { parent, key, value, isLossy } of members) {
      const add = (names: NameTable, name: unknown) => {
        if (typeof name === 'string' && !(isLossy && name.includes('\uFFFD'))) addName(names, name, nameRule);
        else bad.push({ at: `${parent}[${key}]`, name, isLossy });
      };
      if (COMPLETE.includes(parent)) add(complete, value);
      else if (PARTIAL.includes(parent)) add(partial, nameIn(key, value));
      else if (INCLUDES.includes(parent))
        found.includes.push(includeOf(nameOf(key, `a key of \`${parent}\``), value));
      else if (key === 'list') found.list = value ? nameOf(value, key) : undefined;
      else found.lazy.push(String(key));
    }
    yield bad;
  }
  const isRepository =
    lists.some((name) => containers.has(name)) || found.list !== undefined || found.lazy.length > 0;
  if (!isRepository)
    throw new DatasetError('expected `packageNames`, or the packages.json of a Composer repository');
  return found;
}

/** The name of a package: the key of its versions or, if PHP wrote an array, the name in its first version. */
function nameIn(key: string | number, versions: unknown): unknown {
  if (!/^\d+$/.test(String(key))) return key;
  const [version] = Object.values((versions ?? {}) as Record<string, unknown>);
  return isObject(version) ? version['name'] : undefined;
}

function includeOf(file: string, value: unknown): string {
  const hash = isObject(value) ? value['sha256'] : undefined;
  return file.replaceAll('%hash%', typeof hash === 'string' ? hash : '');
}
