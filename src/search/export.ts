import { once } from 'node:events';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { runSearches } from '../elasticsearch/msearch.js';
import type { SearchPool } from '../elasticsearch/search-pool.js';
import type { Logger } from '../util/log.js';
import { decodeEntry, type PackageEntry } from '../snapshot/package-document.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { OverloadedError, type ConcurrencyLimiter } from './concurrency-limiter.js';
import { exportPage } from './queries.js';

/** Entries of one page. Usual ones take 60 KB as text, the longest possible ones 4 MB. */
const PAGE_SIZE = 500;

/** As many exports as may run at a time are running. */
export class TooManyExportsError extends Error {
  override readonly name = 'TooManyExportsError';
}

/** Writes one page of an export. */
export type WritePage = (entries: PackageEntry[], isFirst: boolean) => string;

/** Reads whole snapshots as streams, a limited number at a time. */
export class SnapshotExports {
  /** Exports that have ended: all was read, or a page could not be read. Not those that their clients ended. */
  readonly outcomes = { completed: 0, cut_off: 0 };

  /**
   * @param pool has a long timeout.
   * @param limiter holds a slot until the stream ends.
   */
  constructor(
    private readonly pool: SearchPool,
    readonly limiter: ConcurrencyLimiter,
    private readonly log: Logger,
  ) {}

  /**
   * All packages of a snapshot by number, as text. Each page is read when there is room for it, and Elasticsearch keeps
   * nothing between two pages, so that a slow reader delays no rebuild: if the index is deleted meanwhile, the stream fails.
   * @returns once the first page has been read.
   * @throws {TooManyExportsError} {IndexGoneError} {ElasticsearchUnavailableError}
   */
  open(snapshot: Snapshot, write: WritePage, requestId: string): Promise<Readable> {
    return new Promise((resolve, reject) => {
      const read = async () => {
        const stream = Readable.from(this.#pages(snapshot, write, requestId));
        await once(stream, 'readable');
        resolve(stream);
        await finished(stream).then(
          () => this.outcomes.completed++,
          // `#pages` has reported it, or the client has ended it.
          () => undefined,
        );
      };
      this.limiter.run(read).catch((error: unknown) => {
        const isFull = error instanceof OverloadedError;
        const tooMany = () => new TooManyExportsError('too many exports are running', { cause: error });
        reject(isFull ? tooMany() : (error as Error));
      });
    });
  }

  async *#pages({ index, meta }: Snapshot, write: WritePage, requestId: string): AsyncGenerator<string> {
    for (let from = 0; from < meta.total; from += PAGE_SIZE) {
      const size = Math.min(PAGE_SIZE, meta.total - from);
      let entries: PackageEntry[];
      try {
        entries = await this.#page(index, from, size, requestId);
      } catch (error) {
        if (from > 0) {
          this.outcomes.cut_off++;
          this.log.warn({ err: error, request_id: requestId, index, from }, 'an export was cut off');
        }
        throw error;
      }
      // Fails if the client has ended the export.
      yield write(entries, from === 0);
    }
  }

  async #page(index: string, from: number, size: number, requestId: string): Promise<PackageEntry[]> {
    const [hits] = await runSearches(this.pool, index, [exportPage(from, size)], requestId);
    const entries = (hits?.entries ?? []).map(decodeEntry);
    if (entries.length !== size)
      throw new Error(`${entries.length} of ${size} packages were found from the ordinal ${from} on`);
    return entries;
  }
}
