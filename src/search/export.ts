import { once } from 'node:events';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { runSearches } from '../elasticsearch/msearch.js';
import type { SearchPool } from '../elasticsearch/search-pool.js';
import type { Logger } from '../util/log.js';
import { decodeEntry, type PackageEntry } from '../snapshot/package-document.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { ConcurrencyLimiter, OverloadedError } from './concurrency-limiter.js';
import { exportPage } from './queries.js';

/** Entries of one page. A usual page has 60 KB as text, a page of the longest possible entries 4 MB. */
const PAGE_SIZE = 500;

/** Maximum number of exports at a time: each occupies one processor of Elasticsearch if its client reads fast. */
const MAX_EXPORTS = 2;

/** The limit of concurrent exports is reached. */
export class TooManyExportsError extends Error {
  override readonly name = 'TooManyExportsError';
}

/** Writes one page of an export. */
export type WritePage = (entries: PackageEntry[], isFirst: boolean) => string;

/** Reads whole snapshots as streams, a limited number at a time. */
export class SnapshotExports {
  /**
   * Ended exports: all pages were read, or a page after the first could not be read. Exports that clients ended are not
   * counted.
   */
  readonly outcomes = { completed: 0, cut_off: 0 };

  /** An export holds a slot until its stream ends. */
  readonly limiter = new ConcurrencyLimiter({ running: MAX_EXPORTS, waiting: 0 });

  /** @param pool has a long timeout. */
  constructor(
    private readonly pool: SearchPool,
    private readonly log: Logger,
  ) {}

  /**
   * All packages of a snapshot by number, as text. Each page is read when the buffer has room. Elasticsearch keeps
   * nothing open between two pages, so a slow reader delays no rebuild. If the index is deleted meanwhile, the stream
   * fails.
   * @returns the stream, once the first page has been read.
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
          // `#pages` has reported the error, or the client has ended the export.
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
        const [hits] = await runSearches(this.pool, index, [exportPage(from, size)], requestId);
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
      // Outside of the `try`, because this throws if the client has ended the export.
      yield write(entries, from === 0);
    }
  }
}
