import { decodeEntry } from '../snapshot/package-document.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { lowerCase, unifySeparators } from '../util/name-rule.js';
import { packagesByOrdinal } from './queries.js';
import { entriesOf, type RunSearches } from './tiered-search.js';

/** Number of names in a sample, which takes 1 MB. With half of them, twice as many estimates are wrong. */
export const SAMPLE_SIZE = 16_384;

/** Number of names per request: few enough for a fast response even if each name has to be read from disk. */
export const PAGE_SIZE = 512;

/**
 * A sample of a registry's names, to estimate how many names start with a query. One sample serves all snapshots,
 * because their names hardly differ. A wrong estimate only costs time. If all tiers were always searched, Elasticsearch
 * would take 17 % more processor time for the searches of `test/fixtures/queries` (1,000,000 names; 300,000: 12 %).
 */
export class NameSample {
  /** As searches compare them, in the order of UTF-16 code units. */
  readonly #names: string[] = [];
  #isReading = false;

  /** Whether more than `limit` of `total` names are likely to start with `q`, whose separators are unified. */
  fills(q: string, limit: number, total: number): boolean {
    const start = lowerCase(q);
    const found = this.#firstIndex(`${start}\uFFFF`) - this.#firstIndex(start);
    return found * total > limit * this.#names.length;
  }

  /**
   * Adds a page of random names, unless the sample is complete or a page is being read. Called after each successful
   * search, so the next search replaces a page that could not be read. Never throws.
   */
  async grow({ meta }: Pick<Snapshot, 'meta'>, run: RunSearches): Promise<void> {
    if (this.#isReading || this.#names.length >= SAMPLE_SIZE) return;
    this.#isReading = true;
    const ordinals = Array.from({ length: PAGE_SIZE }, () => Math.floor(Math.random() * meta.total));
    const names = await run([packagesByOrdinal(ordinals)])
      .then((hits) => entriesOf(hits).map((entry) => decodeEntry(entry).name))
      .catch(() => []);
    this.#names.push(...names.map((name) => lowerCase(unifySeparators(meta.name_rule, name))));
    this.#names.sort();
    this.#isReading = false;
  }

  /** Index of the first name that is not before `text`. */
  #firstIndex(text: string): number {
    let low = 0;
    let high = this.#names.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#names[middle] as string) < text) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
