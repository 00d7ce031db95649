import { DatasetError } from '../dataset-error.js';
import type { Documents } from '../documents/documents.js';
import { JSON_HEADERS, readJson, type Containers } from '../documents/json.js';
import type { Format, ListedPackage } from './format.js';
import { isObject, nameIn } from './members.js';

/** Rows of a page: one megabyte. Servers may send fewer. */
const LIMIT = 10_000;

/**
 * CouchDB's `_all_docs` (https://docs.couchdb.org/en/stable/api/database/bulk-api.html), which npm's replication endpoint and
 * mirrors of it serve, in pages: each begins with the last name of the one before, which is missing if it was unpublished
 * meanwhile. Real servers cap `limit` without saying so, so a short page is not the end. The order is theirs: byte order in
 * CouchDB, any other in servers that are not. Names that begin with `_` are design documents.
 */
export const npm: Format = {
  columns: [],
  async *read(documents: Documents): AsyncGenerator<ListedPackage[]> {
    const startKeys = new Set<string>();
    let last: string | undefined;
    for (let page = 1; ; page++) {
      const start = last;
      yield* documents.reread(() => readPage(documents, page, last, (name) => (last = name)));
      if (last === start || last === undefined || documents.urls[0].startsWith('file:')) return;
      if (startKeys.has(last))
        throw new DatasetError('its names are those of an earlier page: expected later ones');
      startKeys.add(last);
    }
  },
};

/** Reads the rows after `start`. @param onName called with each name. */
async function* readPage(
  documents: Documents,
  page: number,
  start: string | undefined,
  onName: (name: string) => void,
): AsyncGenerator<ListedPackage[]> {
  const url = new URL(documents.urls[0]);
  if (url.protocol !== 'file:') {
    url.searchParams.set('limit', String(LIMIT));
    if (start !== undefined) url.searchParams.set('startkey', JSON.stringify(start));
  }
  const document = await documents.open(url.href, `page ${page}`, JSON_HEADERS);
  const containers: Containers = new Map();
  let isFirst = true;
  for await (const rows of readJson(document.text(), ['rows.*'], containers)) {
    const packages: ListedPackage[] = [];
    for (const { key, value } of rows) {
      const name = nameIn(isObject(value) ? value['id'] : undefined, `rows[${key}].id`);
      const isStart = isFirst && name === start;
      isFirst = false;
      if (isStart) continue;
      if (name === start) throw new DatasetError(`rows[${key}].id is the name that the page begins with`);
      onName(name);
      if (!name.startsWith('_')) packages.push({ name });
    }
    yield packages;
  }
  if (containers.get('rows') !== 'array')
    throw new DatasetError('expected a page of _all_docs: it has no array `rows`');
}
