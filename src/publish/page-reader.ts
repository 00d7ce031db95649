import type { Hits } from '../elasticsearch/msearch.js';
import type { SearchPool } from '../elasticsearch/search-pool.js';
import { entriesInNameOrder, type Clauses } from '../snapshot/name-order.js';
import { decodeEntry } from '../snapshot/package-document.js';
import { retry, type RetryOptions } from './retry.js';

/**
 * Bounds of the number of entries per page, which is estimated from the previous page. A comparison has three pages in
 * memory, in a heap of 128 MB. At worst, each entry has the maximum length, 11 KB in base64.
 */
const MAX_PAGE = 2000;
const MIN_PAGE = 100;

/** Target size of one page, in characters of base64. */
const PAGE_LENGTH = 2_000_000;

/** Identifies these searches in Elasticsearch's tasks and slow logs. */
const OPAQUE_ID = 'compare';

/** Reads a whole snapshot page by page, in name order. */
export class PageReader {
  #size = MIN_PAGE;

  /**
   * @param pool must have a long timeout.
   * @param only restricts the packages, if not all are wanted.
   */
  constructor(
    private readonly pool: SearchPool,
    private readonly index: string,
    private readonly options: RetryOptions,
    private readonly only?: Clauses,
  ) {}

  /**
   * Reads the page after the name `after`, up to and including the name `upTo`.
   * @returns the encoded entries, and the last name (`last`), after which the next page begins. `last` is undefined if
   * no page follows.
   */
  async read(after?: string, upTo?: string): Promise<{ entries: string[]; last: string | undefined }> {
    const size = this.#size;
    const body = entriesInNameOrder(size, after, upTo, this.only);
    const found = await retry(() => this.pool.search(this.index, [body], OPAQUE_ID), this.options);
    const [{ entries }] = found as [Hits];
    const length = entries.reduce((sum, entry) => sum + entry.length, 0);
    if (length > 0) {
      const fitting = Math.floor((PAGE_LENGTH * entries.length) / length);
      this.#size = Math.max(MIN_PAGE, Math.min(MAX_PAGE, fitting));
    }
    return { entries, last: entries.length < size ? undefined : decodeEntry(entries.at(-1) as string).name };
  }
}
