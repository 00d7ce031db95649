import type { SearchPool } from '../../elasticsearch/search-pool.js';
import { isSame, type Difference } from '../../snapshot/change-record.js';
import type { Snapshot } from '../../snapshot/snapshot.js';
import { runSearches } from '../../elasticsearch/msearch.js';
import { decodeEntry, type PackageEntry } from '../../snapshot/package-document.js';
import { isVolatile, OPTIONAL_FIELDS } from '../../snapshot/package-fields.js';
import { entriesInNameOrder } from '../../snapshot/name-order.js';
import { retry, type RetryOptions } from '../retry.js';

/**
 * Maximum number of entries per page. Three pages are in memory at a time, in a heap of 128 MB. A page whose size was
 * chosen for short entries may contain entries of the maximum length, 11 KB in base64.
 */
const MAX_PAGE = 2000;
const MIN_PAGE = 100;

/** Target size of one page, in characters of base64. */
const PAGE_LENGTH = 2_000_000;

/** Unmatched entries of the old snapshot are resolved once there are more than this number. */
const MAX_UNMATCHED = 2000;

/** Identifies these searches in Elasticsearch's tasks and slow logs. */
const OPAQUE_ID = 'compare';

/** A snapshot to read. */
type Source = Pick<Snapshot, 'index' | 'shards'>;

interface CompareOptions extends RetryOptions {
  /** Whether a different package number is a change. */
  hasPackageNo: boolean;
  /** Whether either snapshot has volatile fields. */
  hasVolatile: boolean;
  /** Called with the number of packages of the new snapshot that were compared. */
  onRows: (rows: number) => void;
}

/**
 * Yields the differences between two snapshots, page by page of the new snapshot. Memory is bounded to a few pages of
 * each. Entries are compared in encoded form, or as JSON without ignored members, and decoded only if they differ. Only
 * Elasticsearch orders names, so their order has one definition.
 * @param pool must have a long timeout.
 */
export async function* compare(
  pool: SearchPool,
  older: Source,
  newer: Source,
  options: CompareOptions,
): AsyncGenerator<Difference[]> {
  const { hasPackageNo, hasVolatile, onRows } = options;
  const isWholeEntry = hasPackageNo && !hasVolatile;
  const keyOf = (entry: string) => (isWholeEntry ? entry : comparedMembers(entry, hasPackageNo));
  const oldPages = new PageReader(pool, older, options);
  const newPages = new PageReader(pool, newer, options);
  let compared = 0;
  let after: string | undefined;
  let next = newPages.read(undefined, undefined);
  for (;;) {
    const { entries, isLast } = await next;
    const last = isLast ? undefined : nameOf(entries.at(-1));
    // The next page is requested while the old snapshot is read.
    if (last !== undefined) next = newPages.read(last, undefined);
    // The next iteration awaits this promise. A rejection must be handled even if this iteration fails first.
    next.catch(() => undefined);
    const block = new Block(entries, keyOf, hasPackageNo);
    for (let from = after; ;) {
      const page = await oldPages.read(from, last);
      const records = block.match(page.entries);
      if (records.length > 0) yield records;
      if (page.isLast) break;
      from = nameOf(page.entries.at(-1));
    }
    const records = block.end();
    if (records.length > 0) yield records;
    onRows((compared += entries.length));
    if (last === undefined) return;
    after = last;
  }
}

/** Reads a snapshot page by page, in name order. */
class PageReader {
  #size = MIN_PAGE;

  constructor(
    private readonly pool: SearchPool,
    private readonly source: Source,
    private readonly options: RetryOptions,
  ) {}

  /** Reads the page after the name `after`, up to and including the name `upTo`. Its entries are encoded. */
  async read(after: string | undefined, upTo: string | undefined) {
    const size = this.#size;
    const { index, shards } = this.source;
    const body = entriesInNameOrder(size, shards, after, upTo);
    const [hits] = await retry(() => runSearches(this.pool, index, [body], OPAQUE_ID), this.options);
    const { entries } = hits ?? { entries: [] };
    const length = entries.reduce((sum, entry) => sum + entry.length, 0);
    if (length > 0) {
      const fitting = Math.floor((PAGE_LENGTH * entries.length) / length);
      this.#size = Math.max(MIN_PAGE, Math.min(MAX_PAGE, fitting));
    }
    return { entries, isLast: entries.length < size };
  }
}

/** One page of the new snapshot, compared with the old entries of the same range of names. */
class Block {
  /** New entries without an equal old entry so far, by comparison key. */
  readonly #unmatched: Map<string, string>;
  #removed: string[] = [];
  /** Unmatched new entries by name; created when first needed. */
  #byName: Map<string, PackageEntry> | undefined;
  readonly #updated = new Set<string>();

  constructor(
    entries: readonly string[],
    private readonly keyOf: (entry: string) => string,
    private readonly hasPackageNo: boolean,
  ) {
    this.#unmatched = new Map(entries.map((entry) => [keyOf(entry), entry]));
  }

  /**
   * Compares with a page of the old snapshot.
   * @returns an empty list, or the differences found so far if more than `MAX_UNMATCHED` old entries are unmatched.
   */
  match(entries: readonly string[]): Difference[] {
    for (const entry of entries) if (!this.#unmatched.delete(this.keyOf(entry))) this.#removed.push(entry);
    return this.#removed.length > MAX_UNMATCHED ? this.#resolve() : [];
  }

  /** Returns the remaining differences, after the last old page of the block's range of names. */
  end(): Difference[] {
    const records = this.#resolve();
    for (const encoded of this.#unmatched.values()) {
      const after = decodeEntry(encoded);
      if (!this.#updated.has(after.name)) records.push({ after });
    }
    return records;
  }

  #resolve(): Difference[] {
    if (this.#removed.length === 0) return [];
    this.#byName ??= new Map(
      [...this.#unmatched.values()].map(decodeEntry).map((entry) => [entry.name, entry]),
    );
    const records: Difference[] = [];
    for (const encoded of this.#removed) {
      const before = decodeEntry(encoded);
      const after = this.#byName.get(before.name);
      if (after !== undefined) this.#updated.add(after.name);
      if (after === undefined) records.push({ before });
      else if (!isSame(before, after, this.hasPackageNo)) records.push({ before, after });
    }
    this.#removed = [];
    return records;
  }
}

function nameOf(encoded: string | undefined): string {
  return decodeEntry(encoded ?? '').name;
}

/** The first volatile member in the JSON of an entry. Within values, quotes are escaped. */
const VOLATILE = new RegExp(`,"(?:${OPTIONAL_FIELDS.filter(isVolatile).join('|')})":`);

/** The JSON of the compared members of an entry, without parsing it. */
function comparedMembers(encoded: string, hasPackageNo: boolean): string {
  const text = Buffer.from(encoded, 'base64').toString('latin1');
  const volatile = text.search(VOLATILE);
  return text.slice(text.indexOf(hasPackageNo ? '"' : ','), volatile === -1 ? undefined : volatile);
}
