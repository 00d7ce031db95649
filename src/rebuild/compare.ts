import type { SearchPool } from '../clients/search-pool.js';
import { isSame, type Difference } from '../search/change-record.js';
import type { Generation } from '../search/generation.js';
import { runSearches } from '../search/msearch.js';
import { decodeEntry, type PackageEntry } from '../search/package-document.js';
import { entriesInNameOrder } from '../search/queries.js';
import { retry, type RetryOptions } from './retry.js';

/**
 * Maximum number of entries of one page. Three pages are in memory, and the longest possible entries, of 11 KB each in
 * base64, may follow short ones: the heap of the process has 128 MB.
 */
const MAX_PAGE = 2000;
const MIN_PAGE = 100;

/** Size of one page that is aimed at, in characters of base64. */
const PAGE_LENGTH = 2_000_000;

/** Entries of the old generation without an equal in the new one that are held before they are resolved. */
const MAX_UNMATCHED = 2000;

/** Names these searches in Elasticsearch. */
const OPAQUE_ID = 'compare';

/** A generation to read. */
type Source = Pick<Generation, 'index' | 'shards'>;

interface CompareOptions extends RetryOptions {
  /** Whether a different package number is a change. */
  hasPackageNo: boolean;
  /** Called with the number of packages of the new generation that were compared. */
  onRows: (rows: number) => void;
}

/**
 * The differences between two generations, one page of the new one after the other. Memory is bounded: a few pages of each.
 * Two entries are compared as they are stored, and decoded only if they differ. Only Elasticsearch compares names, so that
 * there is one definition of their order.
 * @param pool with a long timeout.
 */
export async function* compare(
  pool: SearchPool,
  older: Source,
  newer: Source,
  options: CompareOptions,
): AsyncGenerator<Difference[]> {
  const { hasPackageNo, onRows } = options;
  const keyOf = hasPackageNo ? (entry: string) => entry : withoutNumber;
  const oldPages = new PageReader(pool, older, options);
  const newPages = new PageReader(pool, newer, options);
  let compared = 0;
  let after: string | undefined;
  let next = newPages.read(undefined, undefined);
  for (;;) {
    const { entries, isLast } = await next;
    const last = isLast ? undefined : nameOf(entries.at(-1));
    // In flight while the old generation is read.
    if (last !== undefined) next = newPages.read(last, undefined);
    // Awaited in the next round; a failure of this one must not leave it unhandled.
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

interface Page {
  /** As `encodeEntry` made them, in name order. */
  entries: string[];
  /** Whether no others follow. */
  isLast: boolean;
}

/** Reads a generation page by page, in name order. */
class PageReader {
  #size = MIN_PAGE;

  constructor(
    private readonly pool: SearchPool,
    private readonly source: Source,
    private readonly options: RetryOptions,
  ) {}

  /** The page after the name `after`, up to the name `upTo`. */
  async read(after: string | undefined, upTo: string | undefined): Promise<Page> {
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

/** One page of the new generation, and what the old one has up to the same name. */
class Block {
  /** Entries without an equal so far, by what they are compared by. */
  readonly #unmatched: Map<string, string>;
  #removed: string[] = [];
  /** By name, once it is needed before the end. */
  #byName: Map<string, PackageEntry> | undefined;
  readonly #updated = new Set<string>();

  constructor(
    entries: readonly string[],
    private readonly keyOf: (entry: string) => string,
    private readonly hasPackageNo: boolean,
  ) {
    this.#unmatched = new Map(entries.map((entry) => [keyOf(entry), entry]));
  }

  /** Compares with a page of the old generation. @returns what is resolved already, to keep memory bounded. */
  match(entries: readonly string[]): Difference[] {
    for (const entry of entries) if (!this.#unmatched.delete(this.keyOf(entry))) this.#removed.push(entry);
    return this.#removed.length > MAX_UNMATCHED ? this.#resolve() : [];
  }

  /** The differences that are left, once the old generation has no more names up to the last one of the block. */
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

/** The members of an entry after its number. */
function withoutNumber(encoded: string): string {
  const text = Buffer.from(encoded, 'base64').toString('latin1');
  return text.slice(text.indexOf(','));
}
