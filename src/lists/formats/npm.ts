import { DatasetError } from '../fetch/dataset-error.js';
import type { Documents } from '../fetch/documents.js';
import { JSON_HEADERS, readJson, type Containers } from '../readers/json-members.js';
import { isObject, type Format, type Item } from './list-format.js';

/** Number of rows requested per page, about one megabyte. Servers may send fewer rows. */
const LIMIT = 10_000;

/**
 * Minimum share of `total_rows` that a complete list has: the rest may have been unpublished while the pages were read.
 */
const MIN_SHARE = 0.99;

/**
 * CouchDB's `_all_docs` (https://docs.couchdb.org/en/stable/api/database/bulk-api.html), which npm's replication
 * endpoint and its mirrors serve in pages. Each page begins with the last name of the previous page, unless that name
 * was unpublished meanwhile. Servers silently reduce `limit`, so a page with fewer rows may not be the last page.
 * CouchDB sorts names by their bytes. Other servers may use any order. Names that begin with `_` are design documents.
 * `total_rows` includes them, but no deleted documents.
 */
export const npm: Format = {
  place: (at) => `rows[${at}]`,
  async *read(documents: Documents): AsyncGenerator<Item[]> {
    const startKeys = new Set<string>();
    let start: string | undefined;
    let read = 0;
    let total: unknown;
    for (let number = 1; ; number++) {
      const page: Page = { last: start, rows: 0, added: 0, total: undefined };
      yield* documents.reread(() => readPage(documents, number, page));
      const { last, added } = page;
      read += added;
      total = page.total ?? total;
      const isLast = last === undefined || last === start || documents.urls[0].startsWith('file:');
      if (isLast && typeof total === 'number' && read < MIN_SHARE * total)
        throw new DatasetError(`the list has ${read} rows instead of ${total} (total_rows)`);
      if (isLast) return;
      if (startKeys.has(last))
        throw new DatasetError('its names are those of an earlier page: expected later ones');
      startKeys.add(last);
      start = last;
    }
  },
};

/** A page while it is read. */
interface Page {
  /** The last name so far; initially the last name of the previous page, with which this page begins. */
  last: string | undefined;
  rows: number;
  /** Number of rows after the last name of the previous page. They count once if the page is read again. */
  added: number;
  /** `total_rows`: the number of rows of all pages. */
  total: unknown;
}

/** Reads a page: the rows after the last name of the previous page. */
async function* readPage(documents: Documents, number: number, page: Page): AsyncGenerator<Item[]> {
  const start = page.last;
  page.rows = 0;
  const url = new URL(documents.urls[0]);
  if (url.protocol !== 'file:') {
    url.searchParams.set('limit', String(LIMIT));
    if (start !== undefined) url.searchParams.set('startkey', JSON.stringify(start));
  }
  const document = await documents.open(url.href, `page ${number}`, JSON_HEADERS);
  const containers: Containers = new Map();
  for await (const members of readJson(document.text(), ['rows.*', 'total_rows'], containers)) {
    const items: Item[] = [];
    for (const { parent, key: at, value, isLossy } of members) {
      if (parent === '') {
        page.total = value;
        continue;
      }
      const name = isObject(value) ? value['id'] : undefined;
      page.rows++;
      if (name === start && start !== undefined) {
        if (page.rows === 1) continue;
        throw new DatasetError(`rows[${at}].id is the name that the page begins with`);
      }
      page.added++;
      if (typeof name === 'string') page.last = name;
      if (typeof name !== 'string' || !name.startsWith('_')) items.push({ at, name, isLossy });
    }
    yield items;
  }
  if (containers.get('rows') !== 'array')
    throw new DatasetError('expected a page of _all_docs: it has no array `rows`');
}
