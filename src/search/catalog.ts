import { EngineUnavailableError, type SearchPool } from '../clients/search-pool.js';
import type { Logger } from '../log.js';
import { runSearches } from './msearch.js';
import { IndexGoneError } from './msearch-response.js';
import type { EntryGroup } from './package-document.js';
import type { ConcurrencyLimiter } from './concurrency-limiter.js';
import type { Generation } from './generation.js';
import type { GenerationWatcher } from './generation-watcher.js';
import { TierPredictor } from './tier-predictor.js';
import { browsePage, type SearchBody } from './queries.js';
import { searchTierByTier, type SearchResults } from './tiered-search.js';

/** What is logged of a slow search. */
interface SlowSearch {
  requestId: string;
  index: string;
  limit: number;
  q?: string;
  page?: number;
}

/** A search that takes longer than this is logged, in milliseconds: most take less than a hundredth of it. */
const SLOW_MS = 500;

/** No snapshot has been loaded yet. */
export class NotInitializedError extends Error {
  override readonly name = 'NotInitializedError';
}

/** Reads the current generation, only so many searches at a time. */
export class Catalog {
  readonly #predictor = new TierPredictor();

  constructor(
    private readonly pool: SearchPool,
    private readonly generations: GenerationWatcher,
    private readonly limiter: ConcurrencyLimiter,
    private readonly log: Logger,
  ) {}

  /**
   * The generation that reads are served from.
   * @throws {NotInitializedError} before the first is complete.
   * @throws {EngineUnavailableError} if that cannot be determined.
   */
  generation(): Generation {
    const generation = this.generations.current;
    if (generation !== undefined) return generation;
    throw this.generations.engine === 'absent'
      ? new NotInitializedError('no snapshot has been loaded yet')
      : new EngineUnavailableError('no generation could be read yet');
  }

  /**
   * Answers from the current generation, and once more from the next one if it was pruned in between.
   * @throws {NotInitializedError} {EngineUnavailableError} {OverloadedError} {IndexGoneError}
   */
  async read<T>(answer: (generation: Generation) => Promise<T>): Promise<T> {
    try {
      return await answer(this.generation());
    } catch (error) {
      if (!(error instanceof IndexGoneError)) throw error;
    }
    await this.generations.refresh();
    return answer(this.generation());
  }

  /**
   * At most `limit` names of a generation that contain `q`, by rank and name.
   * @throws {IndexGoneError} {EngineUnavailableError} {OverloadedError}
   */
  search({ index, shards }: Generation, q: string, limit: number, requestId: string): Promise<SearchResults> {
    const run = (bodies: SearchBody[]) => runSearches(this.pool, index, bodies, requestId);
    return this.limiter.run(() =>
      this.#logIfSlow({ requestId, index, q, limit }, () =>
        searchTierByTier(run, shards, q, limit, this.#predictor),
      ),
    );
  }

  /**
   * Page `page` (from 1) of all packages by number; empty past the end.
   * @throws {IndexGoneError} {EngineUnavailableError} {OverloadedError}
   */
  async browse(
    { index, meta }: Generation,
    page: number,
    limit: number,
    requestId: string,
  ): Promise<EntryGroup> {
    const from = (page - 1) * limit;
    if (from >= meta.total) return { entries: [] };
    return this.limiter.run(() =>
      this.#logIfSlow({ requestId, index, page, limit }, () =>
        browseIndex(this.pool, index, from, limit, requestId),
      ),
    );
  }

  /** Logs what is slow, also where it fails in the end. */
  async #logIfSlow<T>({ requestId, ...what }: SlowSearch, search: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await search();
    } finally {
      const ms = performance.now() - began;
      if (ms > SLOW_MS) this.log.warn({ request_id: requestId, ...what, ms }, 'slow search');
    }
  }
}

/** The packages of one index with an ordinal in [from, from + size). */
export async function browseIndex(
  pool: SearchPool,
  index: string,
  from: number,
  size: number,
  opaqueId: string,
): Promise<EntryGroup> {
  const [hits] = await runSearches(pool, index, [browsePage(from, size)], opaqueId);
  return { entries: hits?.entries ?? [] };
}
