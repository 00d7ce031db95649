import { SearchRefusedError } from '../elasticsearch/elasticsearch-errors.js';
import type { SearchPool } from '../elasticsearch/search-pool.js';
import { decodeEntry, type EntryGroup, type PackageEntry } from '../snapshot/package-document.js';
import type { SearchLimiters } from './concurrency-limiter.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import type { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { Chains, type ChangesSource } from '../snapshot/chains.js';
import { decodeRecord, nameOf, type ChangeRecord } from '../snapshot/change-record.js';
import { readChanges, type ChangesPage } from './changes-page.js';
import { changesIndexOf } from '../snapshot/index-names.js';
import type { Logger } from '../util/log.js';
import { canonicalName, unifySeparators } from '../util/name-rule.js';
import { NameSample } from './name-sample.js';
import { filterBy, type NameFilter } from './name-filter.js';
import { browsePage, newestAdditions, packagesNamed, similarNames } from './queries.js';
import { searchTierByTier, type RunSearches, type SearchResults, type TieredQuery } from './tiered-search.js';

/** Duration, in milliseconds, above which a search is logged as slow. Most searches take less than 5 ms. */
const SLOW_MS = 500;

/** Per request. A search for 100 characters of a large alphabet occupies one processor of Elasticsearch for 80 ms. */
const SIMILAR_CONCURRENCY = 1;

/** Maximum number of additions of one snapshot that are read: enough remain even if many were removed later. */
const MAX_ADDITIONS = 1000;

const DISTANCES = ['distance0', 'distance1', 'distance2'] as const;

export interface Addition {
  /** The id of the snapshot that added it. */
  snapshot: string;
  entry: PackageEntry;
}

/**
 * Reads the current or the previous snapshot, with a limited number of concurrent searches.
 * Methods that search throw {IndexGoneError}, {ElasticsearchUnavailableError} or {OverloadedError}.
 */
export class Catalog {
  readonly chains: Chains;
  readonly #sample = new NameSample();

  constructor(
    private readonly pool: SearchPool,
    readonly snapshots: SnapshotWatcher,
    private readonly limiters: SearchLimiters,
    private readonly log: Logger,
  ) {
    this.chains = new Chains(snapshots);
  }

  /** Net changes of a chain, in name order. @param after the last name of the previous page. */
  async changes(
    { meta, chain: { from, snapshots } }: ChangesSource,
    { limit, after, filter }: { limit: number; after: string | undefined; filter: NameFilter | undefined },
    requestId: string,
  ): Promise<ChangesPage> {
    if (snapshots.length === 0) return { changes: [], next: undefined };
    const only = filterBy(meta.name_rule, filter);
    const query = { snapshots, hasPackageNo: meta.has_package_no, limit, after, filter: only };
    const what = { requestId, limit, since: from, ...filter };
    return this.#run(this.#changesOf(snapshots), what, (run) => readChanges(run, query), isLike(filter));
  }

  /**
   * Packages that were added in the chain of a snapshot: the newest snapshot first, and within one snapshot, the
   * highest number first. Omits packages that were removed later. Ends at the first index of changes that is missing.
   * @throws {NoChainError}
   */
  async additions(
    snapshot: Snapshot,
    limit: number,
    filter: NameFilter | undefined,
    requestId: string,
  ): Promise<Addition[]> {
    const found = new Map<string, Addition>();
    const only = filterBy(snapshot.meta.name_rule, filter);
    // The last id is the first snapshot of the chain, whose additions are unknown.
    for (const id of this.chains.idsOf(snapshot).slice(0, -1)) {
      const records = await this.#newestRecords(id, only, requestId);
      if (records === undefined) break;
      const names = records.map(nameOf).filter((name) => !found.has(name));
      if (names.length === 0) continue;
      for (const [name, entry] of await this.lookup(snapshot, names, requestId)) {
        // The lookup may find another spelling of the name. That spelling has its own addition record.
        if (entry?.name === name) found.set(name, { snapshot: id, entry });
      }
      if (found.size >= limit) break;
    }
    return [...found.values()].slice(0, limit);
  }

  /** The additions of one snapshot, the highest numbers first; undefined if its changes are missing. */
  async #newestRecords(
    id: string,
    filter: NameFilter | undefined,
    requestId: string,
  ): Promise<ChangeRecord[] | undefined> {
    const search = (run: RunSearches) => run([newestAdditions(MAX_ADDITIONS, filter)]);
    try {
      const [hits] = await this.#run(this.#changesOf([id]), { requestId, ...filter }, search, isLike(filter));
      return hits?.entries.map(decodeRecord);
    } catch (error) {
      if (this.chains.shorten(error)) return undefined;
      throw error;
    }
  }

  /** Matches of `q` by rank, then by weight (with `byWeight`, if the snapshot has weights), then by name. */
  async search(snapshot: Snapshot, query: TieredQuery, requestId: string): Promise<SearchResults> {
    const { index, meta } = snapshot;
    const q = unifySeparators(meta.name_rule, query.q);
    const byWeight = query.byWeight === true && meta.has_weights;
    const isLikelyFull = this.#sample.fills(q, query.limit, meta.total);
    const results = await this.#run(index, { requestId, q, limit: query.limit }, (run) =>
      searchTierByTier(run, { ...query, q, byWeight }, isLikelyFull),
    );
    // At most one request at a time, so it needs no place in the concurrency limit.
    void this.#sample.grow(snapshot, (bodies) => this.pool.search(index, bodies, 'sample'));
    return results;
  }

  /** Compares by the name rule of the snapshot. The keys are the names as given; undefined: no package has the name. */
  async lookup(
    snapshot: Snapshot,
    names: readonly string[],
    requestId: string,
  ): Promise<Map<string, PackageEntry | undefined>> {
    const { index, meta } = snapshot;
    const { name_rule: rule } = meta;
    const unique = [...new Set(names)];
    const [hits] = await this.#run(index, { requestId, names: unique.length }, (run) =>
      run([packagesNamed(unique, rule)]),
    );
    const entries = (hits?.entries ?? []).map(decodeEntry);
    const found = new Map(entries.map((entry) => [canonicalName(rule, entry.name), entry]));
    return new Map(unique.map((name) => [name, found.get(canonicalName(rule, name))]));
  }

  /**
   * By distance, then by weight (with `byWeight`, if the snapshot has weights), then by name. `name` need not exist.
   */
  async similar(
    snapshot: Snapshot,
    { name, limit, byWeight }: { name: string; limit: number; byWeight: boolean },
    requestId: string,
  ): Promise<SearchResults> {
    const { index, meta } = snapshot;
    const bodies = similarNames(name, limit + 1, byWeight && meta.has_weights);
    const hits = await this.#run(index, { requestId, limit, name }, (run) => run(bodies), true);
    let room = limit;
    const groups = DISTANCES.map((member, distance): EntryGroup => {
      const entries = hits[distance]?.entries.slice(0, room) ?? [];
      room -= entries.length;
      return { member, entries };
    });
    const found = hits.reduce((sum, { entries }) => sum + entries.length, 0);
    return { groups, count: limit - room, truncated: found > limit };
  }

  /** Page `page` (from 1) of all packages by number; empty past the end. */
  async browse(
    { index, meta }: Snapshot,
    page: number,
    limit: number,
    requestId: string,
  ): Promise<EntryGroup> {
    const from = (page - 1) * limit;
    if (from >= meta.total) return { entries: [] };
    const [hits] = await this.#run(index, { requestId, page, limit }, (run) =>
      run([browsePage(from, limit)]),
    );
    return { entries: hits?.entries ?? [] };
  }

  #changesOf(snapshots: readonly string[]): string[] {
    return snapshots.map((id) => changesIndexOf(this.snapshots.alias, id));
  }

  /**
   * Runs the searches of one request once the concurrency limit allows them, and logs slow ones, even if they fail.
   * After a refused search, the snapshot watcher probes the index until a search succeeds.
   * @param indices one index, or several that are searched together. Only the last index is logged.
   * @param isSimilar whether the searches are as expensive as a search for look-alikes.
   * @throws {OverloadedError}, and the errors of `SearchPool.search`.
   */
  async #run<T>(
    indices: string | readonly string[],
    { requestId, ...what }: Record<string, unknown> & { requestId: string },
    search: (run: RunSearches) => Promise<T>,
    isSimilar = false,
  ): Promise<T> {
    const concurrency = isSimilar ? SIMILAR_CONCURRENCY : undefined;
    const run: RunSearches = (bodies) => this.pool.search(indices, bodies, requestId, concurrency);
    const limiter = isSimilar ? this.limiters.similar : this.limiters.search;
    const index = [indices].flat().at(-1) ?? '';
    await limiter.acquire();
    const began = performance.now();
    try {
      return await search(run);
    } catch (error) {
      if (error instanceof SearchRefusedError) this.snapshots.onRefused();
      throw error;
    } finally {
      limiter.release();
      const ms = performance.now() - began;
      if (ms > SLOW_MS) this.log.warn({ request_id: requestId, index, ...what, ms }, 'slow search');
    }
  }
}

/** Whether a filter is as expensive as a search for look-alikes. */
function isLike(filter: NameFilter | undefined): boolean {
  return filter !== undefined && 'like' in filter;
}
