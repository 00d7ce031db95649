import { EngineUnavailableError, SearchRefusedError, type SearchPool } from '../clients/search-pool.js';
import type { Logger } from '../log.js';
import { runSearches } from './msearch.js';
import { IndexClosedError, IndexGoneError } from './msearch-response.js';
import { decodeEntry, type EntryGroup, type PackageEntry } from './package-document.js';
import type { ConcurrencyLimiter } from './concurrency-limiter.js';
import { maxDistance } from './similarity.js';
import { hasFold, type Generation } from './generation.js';
import type { GenerationWatcher } from './generation-watcher.js';
import { decodeRecord, nameOf } from './change-record.js';
import { readChanges, type ChangesPage } from './changes.js';
import { changesIndexOf, isChangesOf, snapshotIdOf } from './index-names.js';
import type { TierPredictor } from './tier-predictor.js';
import { browsePage, newestAdditions, packagesNamed, similarNames, type SearchBody } from './queries.js';
import { searchTierByTier, type RunSearches, type SearchResults, type TieredQuery } from './tiered-search.js';

/** Logged fields of a slow search. */
interface SlowSearch {
  requestId: string;
  index: string;
  limit?: number;
  q?: string;
  page?: number;
  name?: string;
  names?: number;
  since?: string;
}

/** A search that takes longer than this is logged, in milliseconds: most take less than a hundredth of it. */
const SLOW_MS = 500;

/**
 * Maximum number of concurrent searches of one request for look-alikes: a name of a hundred characters from a
 * large alphabet occupies one processor of Elasticsearch for 80 ms. A higher limit would occupy more of them.
 */
const SIMILAR_CONCURRENCY = 1;

/** Maximum number of additions of one snapshot that are considered for a list of the newest. */
const MAX_CANDIDATES = 1000;

/** How long changes that were missing are not asked for, in milliseconds: an operator may restore or open their index. */
const MISSING_MS = 60_000;

/** The members of entries at a distance of 0, 1 and 2. */
const DISTANCES = ['distance0', 'distance1', 'distance2'] as const;

/** No snapshot has been loaded yet. */
export class NotInitializedError extends Error {
  override readonly name = 'NotInitializedError';
}

/** The snapshot is neither the current nor the previous one, or the changes since it are not available. */
export class SnapshotGoneError extends Error {
  override readonly name = 'SnapshotGoneError';
}

/**
 * The lineage of the generation was not recorded: it was built by an earlier release, with
 * CHANGES_RETENTION=0, or with a key that lacks the right, or the recording failed.
 */
export class NoLineageError extends Error {
  override readonly name = 'NoLineageError';
}

/** The generation was built by a release without look-alikes. The next rebuild adds the missing field. */
export class NoFoldError extends Error {
  override readonly name = 'NoFoldError';
}

/** The look-alikes of a name: entries by distance, nearest first. */
export interface SimilarResults {
  groups: EntryGroup[];
  count: number;
  /** Whether more names match than were requested. */
  truncated: boolean;
}

/** The snapshots from one to another. */
export interface Chain {
  /** Id of the first. */
  from: string;
  /** Ids of the following ones, oldest first. */
  snapshots: readonly string[];
}

/** A package that was added. */
export interface Addition {
  /** The id of the snapshot that added it. */
  snapshot: string;
  entry: PackageEntry;
}

/** Concurrency limits of a replica. Look-alikes cost much more than searches and must not displace them. */
export interface SearchLimiters {
  search: ConcurrencyLimiter;
  similar: ConcurrencyLimiter;
}

/** Reads the current or the previous generation, with a limited number of concurrent searches. */
export class Catalog {
  /** Ids of snapshots whose changes are missing, so that no chain goes further back, and until when they count as missing. */
  readonly #withoutChanges = new Map<string, number>();

  constructor(
    private readonly pool: SearchPool,
    private readonly generations: GenerationWatcher,
    private readonly predictor: TierPredictor,
    private readonly limiters: SearchLimiters,
    private readonly log: Logger,
  ) {}

  /**
   * The generation that reads are served from.
   * @throws {NotInitializedError} before the first is complete.
   * @throws {EngineUnavailableError} if Elasticsearch could not be read yet.
   */
  generation(): Generation {
    const generation = this.generations.current;
    if (generation !== undefined) return generation;
    throw this.generations.engine === 'absent'
      ? new NotInitializedError('no snapshot has been loaded yet')
      : new EngineUnavailableError('no generation could be read yet');
  }

  /**
   * Runs `answer` on the generation of a snapshot. Without an id: on the current generation, and again on the
   * next one if the current one was pruned meanwhile.
   * @throws {SnapshotGoneError} {NotInitializedError} {EngineUnavailableError} {OverloadedError} {IndexGoneError}
   */
  async read<T>(snapshot: string | undefined, answer: (generation: Generation) => Promise<T>): Promise<T> {
    try {
      return await answer(snapshot === undefined ? this.generation() : await this.#select(snapshot));
    } catch (error) {
      if (!(error instanceof IndexGoneError)) throw error;
      if (snapshot !== undefined) throw new SnapshotGoneError(snapshot, { cause: error });
    }
    await this.generations.refresh();
    return answer(this.generation());
  }

  async #select(snapshot: string): Promise<Generation> {
    const known = this.generations.find(snapshot);
    if (known !== undefined) return known;
    await this.generations.refreshAll();
    const found = this.generations.find(snapshot);
    if (found !== undefined) return found;
    this.generation();
    this.#assertKnown();
    throw new SnapshotGoneError(snapshot);
  }

  #assertKnown(): void {
    if (this.generations.engine !== 'present') throw new EngineUnavailableError('no alias could be read');
  }

  /**
   * Runs `answer` on the generation of a snapshot, or on the current one, if `since` is among the snapshots
   * that led to it. If `since` is unknown, a flip may have been missed, so the aliases are read once more. If somebody deleted
   * an index of changes, the chain begins there.
   * @throws {NoLineageError} {SnapshotGoneError} {NotInitializedError} {EngineUnavailableError} {OverloadedError}
   */
  async readSince<T>(
    snapshot: string | undefined,
    since: string | undefined,
    answer: (generation: Generation, chain: Chain) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      try {
        return await this.#readSince(snapshot, since, answer);
      } catch (error) {
        if (!this.#shorten(error instanceof SnapshotGoneError ? error.cause : error)) throw error;
      }
    }
  }

  #readSince<T>(
    snapshot: string | undefined,
    since: string | undefined,
    answer: (generation: Generation, chain: Chain) => Promise<T>,
  ): Promise<T> {
    return this.read(snapshot, async (generation) => {
      const chain = this.#chain(generation, since);
      if (chain !== undefined) return answer(generation, chain);
      await this.generations.refreshAll();
      const current = snapshot === undefined ? this.generation() : generation;
      const found = this.#chain(current, since);
      if (found !== undefined) return answer(current, found);
      this.#assertKnown();
      throw new SnapshotGoneError(since);
    });
  }

  /** Lets chains begin at a snapshot whose changes are missing. @returns false if they already do, or for another error. */
  #shorten(error: unknown): boolean {
    if (!(error instanceof IndexGoneError || error instanceof IndexClosedError)) return false;
    const { alias } = this.generations;
    const id = snapshotIdOf(error.index);
    if (!isChangesOf(alias, error.index) || this.#lacksChanges(id)) return false;
    this.#withoutChanges.set(id, performance.now() + MISSING_MS);
    return true;
  }

  #lacksChanges(id: string): boolean {
    const until = this.#withoutChanges.get(id) ?? -Infinity;
    if (until > performance.now()) return true;
    this.#withoutChanges.delete(id);
    return false;
  }

  /**
   * The ids of the snapshot of a generation and of those that led to it, newest first, as far as the changes exist.
   * @throws {NoLineageError}
   */
  #lineage({ snapshot, meta }: Generation): string[] {
    if (meta.lineage === undefined) throw new NoLineageError(snapshot);
    const ids = [snapshot, ...meta.lineage.ancestors];
    const first = ids.findIndex((id) => this.#lacksChanges(id));
    return first === -1 ? ids : ids.slice(0, first + 1);
  }

  /** @returns undefined if `since` is not in the lineage. */
  #chain(generation: Generation, since: string | undefined): Chain | undefined {
    const ids = this.#lineage(generation);
    const from = since ?? ids[1] ?? generation.snapshot;
    const length = ids.indexOf(from);
    return length === -1 ? undefined : { from, snapshots: ids.slice(0, length).reverse() };
  }

  /**
   * At most `limit` net changes of a chain, in name order.
   * @param after the name that the page follows.
   * @throws {IndexGoneError} {EngineUnavailableError} {OverloadedError}
   */
  async changes(
    { meta }: Generation,
    { from, snapshots }: Chain,
    { limit, after }: { limit: number; after: string | undefined },
    requestId: string,
  ): Promise<ChangesPage> {
    if (snapshots.length === 0) return { changes: [], next: undefined };
    const run = this.#onChangesOf(snapshots, requestId);
    const query = { snapshots, hasPackageNo: meta.has_package_no, limit, after };
    return this.limiters.search.run(() =>
      this.#logIfSlow({ requestId, index: this.#changesOf(snapshots.at(-1)), limit, since: from }, () =>
        readChanges(run, query),
      ),
    );
  }

  /**
   * At most `limit` added packages from the chain of a generation, ordered by snapshot, newest first, then by
   * descending number. Packages that were removed since are omitted, and those of changes that were deleted.
   * @throws {NoLineageError} {IndexGoneError} {EngineUnavailableError} {OverloadedError}
   */
  async additions(generation: Generation, limit: number, requestId: string): Promise<Addition[]> {
    const found = new Map<string, Addition>();
    // The chain begins at the last snapshot, whose additions are unknown.
    for (const id of this.#lineage(generation).slice(0, -1)) {
      const run = this.#onChangesOf([id], requestId);
      const additions = this.limiters.search.run(() =>
        this.#logIfSlow({ requestId, index: this.#changesOf(id), limit }, () =>
          run([newestAdditions(MAX_CANDIDATES)]),
        ),
      );
      const [hits] = await additions.catch((error: unknown) => {
        if (this.#shorten(error)) return [];
        throw error;
      });
      if (this.#lacksChanges(id)) break;
      const names = (hits?.entries ?? []).map((record) => nameOf(decodeRecord(record)));
      while (names.length > 0 && found.size < limit) {
        const unseen = names.splice(0, limit).filter((name) => !found.has(name));
        const packages = await this.lookup(generation, unseen, requestId);
        for (const name of unseen) {
          const entry = packages.get(name);
          if (entry !== undefined) found.set(name, { snapshot: id, entry });
        }
      }
      if (found.size >= limit) break;
    }
    return [...found.values()].slice(0, limit);
  }

  /**
   * At most `limit` names of a generation that contain `q`, by rank and name.
   * @throws {IndexGoneError} {EngineUnavailableError} {OverloadedError}
   */
  search(generation: Generation, query: TieredQuery, requestId: string): Promise<SearchResults> {
    const { index, shards } = generation;
    const run = (bodies: SearchBody[]) => runSearches(this.pool, index, bodies, requestId);
    const { q, limit } = query;
    return this.limiters.search.run(() =>
      this.#logIfSlow({ requestId, index, q, limit }, () =>
        searchTierByTier(run, shards, query, this.predictor.firstTierSuffices(generation, q, limit)),
      ),
    );
  }

  /**
   * The packages with these names, code point for code point, by name.
   * @throws {IndexGoneError} {EngineUnavailableError} {OverloadedError}
   */
  async lookup(
    { index, meta }: Generation,
    names: readonly string[],
    requestId: string,
  ): Promise<Map<string, PackageEntry>> {
    const unique = [...new Set(names)];
    const [hits] = await this.limiters.search.run(() =>
      this.#logIfSlow({ requestId, index, names: unique.length }, () =>
        runSearches(this.pool, index, [packagesNamed(unique, hasFold(meta))], requestId),
      ),
    );
    const entries = (hits?.entries ?? []).map(decodeEntry);
    return new Map(entries.map((entry) => [entry.name, entry]));
  }

  /**
   * At most `limit` names that are easily mistaken for `name`, which need not exist, by distance and name.
   * @throws {NoFoldError} {IndexGoneError} {EngineUnavailableError} {OverloadedError}
   */
  async similar(
    { index, shards, meta }: Generation,
    name: string,
    limit: number,
    requestId: string,
  ): Promise<SimilarResults> {
    if (!hasFold(meta)) throw new NoFoldError(index);
    const bodies = similarNames(name, maxDistance(name), limit + 1, shards);
    const hits = await this.limiters.similar.run(() =>
      this.#logIfSlow({ requestId, index, limit, name }, () =>
        runSearches(this.pool, index, bodies, requestId, SIMILAR_CONCURRENCY),
      ),
    );
    let room = limit;
    const groups = DISTANCES.map((member, distance): EntryGroup => {
      const entries = hits[distance]?.entries.slice(0, room) ?? [];
      room -= entries.length;
      return { member, entries };
    });
    const found = hits.reduce((sum, { entries }) => sum + entries.length, 0);
    return { groups, count: limit - room, truncated: found > limit };
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
    return this.limiters.search.run(() =>
      this.#logIfSlow({ requestId, index, page, limit }, () =>
        browseIndex(this.pool, index, from, limit, requestId),
      ),
    );
  }

  #changesOf(snapshot = ''): string {
    return changesIndexOf(this.generations.alias, snapshot);
  }

  /** Searches the changes of several snapshots as one. */
  #onChangesOf(snapshots: readonly string[], requestId: string): RunSearches {
    const indices = snapshots.map((id) => this.#changesOf(id));
    return (bodies) => runSearches(this.pool, indices, bodies, requestId);
  }

  /** Logs a slow search, even if it fails, and makes the service unhealthy if Elasticsearch refuses it. */
  async #logIfSlow<T>({ requestId, ...what }: SlowSearch, search: () => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await search();
    } catch (error) {
      if (error instanceof SearchRefusedError) this.generations.onRefused(what.index, search);
      throw error;
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
