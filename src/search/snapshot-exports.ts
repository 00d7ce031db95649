import { once } from 'node:events';
import { finished, Readable } from 'node:stream';
import type { SearchPool } from '../elasticsearch/search-pool.js';
import type { Logger } from '../util/log.js';
import { decodeEntry, type PackageEntry } from '../snapshot/package-document.js';
import { EXPORT_TIMEOUT } from '../snapshot/name-order.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { browsePage } from './queries.js';

/** Entries per page. The text of a usual page has 60 KB. If all entries have the maximum length, it has 4 MB. */
const PAGE_SIZE = 500;

/** Maximum number of exports at a time: each occupies one processor of Elasticsearch if its client reads fast. */
const MAX_EXPORTS = 2;

export class TooManyExportsError extends Error {
  override readonly name = 'TooManyExportsError';
}

export type WritePage = (entries: PackageEntry[], isFirst: boolean) => string;

/** Reads whole snapshots as streams, a limited number at a time. */
export class SnapshotExports {
  running = 0;
  /** Number of exports rejected so far, because others were running. */
  refused = 0;
  /** `cut_off`: a page after the first could not be read. Exports that clients ended are not counted. */
  readonly outcomes = { completed: 0, cut_off: 0 };

  /** @param pool has a long timeout. */
  constructor(
    private readonly pool: SearchPool,
    private readonly log: Logger,
  ) {}

  /**
   * All packages by number, as text, once the first page has been read. Elasticsearch keeps nothing open between two
   * pages, so a slow reader delays no rebuild. If the index is deleted meanwhile, the stream fails.
   * @throws {TooManyExportsError} {IndexGoneError} {ElasticsearchUnavailableError}
   */
  async open(snapshot: Snapshot, write: WritePage, requestId: string): Promise<Readable> {
    if (this.running >= MAX_EXPORTS) {
      this.refused++;
      throw new TooManyExportsError('too many exports are running');
    }
    this.running++;
    const stream = Readable.from(this.#pages(snapshot, write, requestId));
    finished(stream, (error) => {
      this.running--;
      // `#pages` counts the exports that were cut off.
      if (!error) this.outcomes.completed++;
    });
    await once(stream, 'readable');
    return stream;
  }

  async *#pages({ index, meta }: Snapshot, write: WritePage, requestId: string): AsyncGenerator<string> {
    for (let from = 0; from < meta.total; from += PAGE_SIZE) {
      const size = Math.min(PAGE_SIZE, meta.total - from);
      let entries: PackageEntry[];
      try {
        // Reading a page of an export may take longer than a search.
        const body = { ...browsePage(from, size), timeout: EXPORT_TIMEOUT };
        const [hits] = await this.pool.search(index, [body], requestId);
        entries = (hits?.entries ?? []).map(decodeEntry);
        if (entries.length !== size)
          throw new Error(`${entries.length} of ${size} packages were found from the ordinal ${from} on`);
      } catch (error) {
        if (from > 0) {
          this.outcomes.cut_off++;
          this.log.warn({ err: error, request_id: requestId, index, from }, 'an export was cut off');
        }
        throw error;
      }
      // `yield` is outside of the `try`, because it throws if the client has ended the export.
      yield write(entries, from === 0);
    }
  }
}
