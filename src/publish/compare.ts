import type { SearchPool } from '../elasticsearch/search-pool.js';
import { isSame, type Difference } from '../snapshot/change-record.js';
import { comparedText, decodeEntry, type PackageEntry } from '../snapshot/package-document.js';
import type { RetryOptions } from './retry.js';
import { PageReader } from './page-reader.js';

/** If more old entries than this are unmatched after a page, their differences by name are reported at once. */
const MAX_UNMATCHED = 2000;

interface CompareOptions extends RetryOptions {
  /** Whether a different package number is a change. */
  hasPackageNo: boolean;
  /** Whether either snapshot has volatile fields. */
  hasVolatile: boolean;
  /** Called with the number of packages of the new snapshot that were compared. */
  onRows: (rows: number) => void;
}

/**
 * Yields the differences between two snapshots, page by page of the new snapshot. At most a few pages of each snapshot
 * are in memory. Entries are compared in encoded form, or as JSON without ignored members. They are parsed only while
 * no equal entry has been found. Names are never sorted here: only Elasticsearch defines their order.
 * @param pool must have a long timeout.
 * @param older {newer} the indices of the snapshots.
 */
export async function* compare(
  pool: SearchPool,
  older: string,
  newer: string,
  options: CompareOptions,
): AsyncGenerator<Difference[]> {
  const { hasPackageNo, hasVolatile, onRows } = options;
  const isWholeEntry = hasPackageNo && !hasVolatile;
  const keyOf = (entry: string) => (isWholeEntry ? entry : comparedText(entry, hasPackageNo));
  const oldPages = new PageReader(pool, older, options);
  const newPages = new PageReader(pool, newer, options);
  let compared = 0;
  let after: string | undefined;
  let next = newPages.read();
  for (;;) {
    const { entries, last } = await next;
    // The next page is requested while the old snapshot is read.
    if (last !== undefined) next = newPages.read(last);
    // The next iteration awaits this promise. A rejection must be handled even if this iteration fails first.
    next.catch(() => undefined);
    const block = new Block(entries, keyOf, hasPackageNo);
    do {
      const page = await oldPages.read(after, last);
      const records = block.match(page.entries);
      if (records.length > 0) yield records;
      after = page.last;
    } while (after !== undefined);
    const records = block.end();
    if (records.length > 0) yield records;
    onRows((compared += entries.length));
    if (last === undefined) return;
    after = last;
  }
}

/** One page of the new snapshot, compared with the old entries of the same range of names. */
class Block {
  /** The new entries that no old entry has matched so far, by content or by name. The keys are from `keyOf`. */
  readonly #unmatched: Map<string, string>;
  #removed: string[] = [];

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

  /** Returns the remaining differences. Call it after the last old page of this range of names. */
  end(): Difference[] {
    const records = this.#resolve();
    for (const encoded of this.#unmatched.values()) records.push({ after: decodeEntry(encoded) });
    return records;
  }

  #resolve(): Difference[] {
    if (this.#removed.length === 0) return [];
    const byName = new Map<string, { key: string; after: PackageEntry }>();
    for (const [key, encoded] of this.#unmatched) {
      const after = decodeEntry(encoded);
      byName.set(after.name, { key, after });
    }
    const records: Difference[] = [];
    for (const encoded of this.#removed) {
      const before = decodeEntry(encoded);
      const found = byName.get(before.name);
      if (found === undefined) records.push({ before });
      else {
        this.#unmatched.delete(found.key);
        if (!isSame(before, found.after, this.hasPackageNo)) records.push({ before, after: found.after });
      }
    }
    this.#removed = [];
    return records;
  }
}
