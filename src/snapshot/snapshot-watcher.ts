import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@elastic/elasticsearch';
import type { Logger } from '../util/log.js';
import { describeAuthError } from '../elasticsearch/elasticsearch.js';
import { ElasticsearchUnavailableError, SearchRefusedError } from '../elasticsearch/elasticsearch-errors.js';
import { AmbiguousAliasError, findIndex, isReadable, withChainLimit, type Snapshot } from './snapshot.js';
import { previousAliasOf } from './index-names.js';
import { SharedRuns } from './shared-runs.js';

/** Poll interval of the alias, in milliseconds: the longest delay before a replica sees a flip. */
const POLL_MS = 1000;

/** Minimum time between two reads of both aliases, for snapshots that this replica does not know, in milliseconds. */
const REFRESH_ALL_INTERVAL_MS = 200;

/**
 * `absent`: Elasticsearch responds and has no complete index. `unreachable`: it does not respond, or rejects the
 * key. `unusable`: the alias points to several indices, or to one that is closed, that Elasticsearch refuses to search, or whose
 * `_meta` this version cannot read. In the last two states, the last known snapshot is kept.
 */
export const SNAPSHOT_STATES = ['unknown', 'present', 'absent', 'unreachable', 'unusable'] as const;

export type SnapshotState = (typeof SNAPSHOT_STATES)[number];

/** The message for `unreachable`. */
const UNREACHABLE = 'Elasticsearch is unavailable at ELASTICSEARCH_URL';

/** The messages for `unusable`. */
const CLOSED = 'the index behind the alias is closed: open it, or rebuild';
const REFUSED =
  'Elasticsearch refuses searches: undo the setting of the cluster or of the index that its error names';
const UNREADABLE =
  'the index behind the alias was not written by this version of the service: deploy the version that wrote it, or rebuild';

/** No snapshot has been loaded yet. */
export class NotInitializedError extends Error {
  override readonly name = 'NotInitializedError';
}

/**
 * Why a snapshot is gone. `replaced`: it is neither the current nor the previous one. `deleted`: its index was deleted
 * during the read. The others are of a snapshot that changes are requested since. `expired`: it is older than those of
 * CHANGES_RETENTION. `changes_deleted`: an index of changes after it was deleted or closed. `not_in_chain`: it did not
 * lead to the snapshot that is read.
 */
export type GoneReason = 'replaced' | 'deleted' | 'expired' | 'changes_deleted' | 'not_in_chain';

/** The snapshot cannot be read, or the changes since it are not available. */
export class SnapshotGoneError extends Error {
  override readonly name = 'SnapshotGoneError';

  constructor(
    id: string,
    readonly reason: GoneReason,
    options?: ErrorOptions,
  ) {
    super(`${id}: ${reason}`, options);
  }
}

/** Tracks the current and the previous snapshot: polls every second, and on request. */
export class SnapshotWatcher {
  #current: Snapshot | undefined;
  #previous: Snapshot | undefined;
  #state: SnapshotState = 'unknown';
  #stateReason: string | undefined;
  #hasReachedElasticsearch = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #looks = new SharedRuns(() => this.#look());
  #refreshingAll: Promise<void> | undefined;
  #refreshedAllAt = -Infinity;
  /** A search that Elasticsearch refused, until it succeeds. */
  #refused: (() => Promise<unknown>) | undefined;
  #stopped = false;

  constructor(
    private readonly client: Client,
    readonly alias: string,
    private readonly log: Logger,
    /** CHANGES_RETENTION */
    readonly changesRetention: number,
  ) {}

  /** The last complete snapshot that was seen. It is kept while Elasticsearch is unavailable. */
  get current(): Snapshot | undefined {
    return this.#current;
  }

  /** The snapshot with an id, if it is the current or the previous one, as far as this replica knows. */
  find(id: string): Snapshot | undefined {
    return [this.#current, this.#previous].find((snapshot) => snapshot?.id === id);
  }

  /**
   * The snapshot that reads are served from.
   * @throws {NotInitializedError} before the first is complete.
   * @throws {ElasticsearchUnavailableError} if Elasticsearch could not be read yet.
   */
  served(): Snapshot {
    if (this.#current !== undefined) return this.#current;
    throw this.#state === 'absent'
      ? new NotInitializedError('no snapshot has been loaded yet')
      : new ElasticsearchUnavailableError('no snapshot could be read yet');
  }

  /**
   * The snapshot with an id; without one, the current one. If the id is unknown, a flip may have been missed, so
   * the aliases are read once more.
   * @throws {SnapshotGoneError} {NotInitializedError} {ElasticsearchUnavailableError}
   */
  async select(id: string | undefined): Promise<Snapshot> {
    if (id === undefined) return this.served();
    if (this.find(id) === undefined) await this.refreshAll();
    const found = this.find(id);
    if (found !== undefined) return found;
    this.served();
    this.assertKnown();
    throw new SnapshotGoneError(id, 'replaced');
  }

  /** @throws {ElasticsearchUnavailableError} if the snapshots may have changed since they were read. */
  assertKnown(): void {
    if (this.#state !== 'present') throw new ElasticsearchUnavailableError('no alias could be read');
  }

  get state(): SnapshotState {
    return this.#state;
  }

  /** Whether Elasticsearch has responded since the start, with or without an index. That it rejected the key does not count. */
  get hasReachedElasticsearch(): boolean {
    return this.#hasReachedElasticsearch;
  }

  /** Why the state is `unreachable` or `unusable`, in one line for an operator. */
  get stateReason(): string | undefined {
    return this.#stateReason;
  }

  /**
   * Makes the state `unusable` until this search of the current index, which Elasticsearch refused, succeeds; it is repeated at
   * every poll.
   */
  onRefused(index: string, search: () => Promise<unknown>): void {
    if (this.#refused !== undefined || index !== this.#current?.index) return;
    this.#refused = search;
    void this.refresh();
  }

  /** Polls once, then every second until `stop()`. */
  async start(): Promise<void> {
    await this.refresh();
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** Reads the alias, after this call; after a flip, also the alias of the previous snapshot. Never throws: see `current`, `state`. */
  refresh(): Promise<void> {
    return this.#looks.run();
  }

  /**
   * Reads both aliases, after this call, so that a replica that has not seen a flip yet agrees with one that has. At most
   * once in 200 ms; waiting calls share the next read.
   */
  refreshAll(): Promise<void> {
    const wait = Math.max(0, this.#refreshedAllAt + REFRESH_ALL_INTERVAL_MS - performance.now());
    this.#refreshingAll ??= pause(wait).then(async () => {
      this.#refreshingAll = undefined;
      this.#refreshedAllAt = performance.now();
      await this.refresh();
      // A second read of an Elasticsearch that does not respond would only delay clients.
      if (this.#state === 'present') this.#previous = await this.#findPrevious(this.#previous);
    });
    return this.#refreshingAll;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      void this.refresh().then(() => this.#schedule());
    }, POLL_MS);
  }

  async #look(): Promise<void> {
    try {
      const found = await findIndex(this.client, this.alias);
      if (found?.closed === true) {
        this.#enter('unusable', CLOSED, { index: found.index });
        return;
      }
      if (found !== undefined && !isReadable(found)) {
        this.#enter('unusable', UNREADABLE, { index: found.index });
        return;
      }
      if (found?.index === this.#current?.index) await this.#refused?.();
      this.#refused = undefined;
      this.#enter(found === undefined ? 'absent' : 'present');
      if (found?.index === this.#current?.index) return;
      this.log.info({ index: found?.index, total: found?.meta.total }, 'serving another snapshot');
      // Usually right, and set before the alias is read because clients may already request it.
      this.#previous = this.#current;
      this.#current = found && withChainLimit(found, this.changesRetention);
      this.#previous = await this.#findPrevious(this.#previous);
    } catch (error) {
      if (error instanceof SearchRefusedError) {
        this.#enter('unusable', REFUSED, { err: error });
        return;
      }
      if (error instanceof AmbiguousAliasError) {
        this.#enter('unusable', error.message, { err: error });
        return;
      }
      const refusal = describeAuthError(error, 'ELASTICSEARCH_API_KEY');
      this.#enter('unreachable', refusal ?? UNREACHABLE, { err: error });
    }
  }

  /**
   * Finds the previous snapshot by its alias, if it can be served.
   * @param otherwise returned if the alias cannot be read: keys of earlier releases may lack the right.
   */
  async #findPrevious(otherwise: Snapshot | undefined): Promise<Snapshot | undefined> {
    try {
      const found = await findIndex(this.client, previousAliasOf(this.alias));
      if (found === undefined || found.closed || !isReadable(found)) return undefined;
      return withChainLimit(found, this.changesRetention);
    } catch (error) {
      this.log.debug({ err: error }, 'the previous snapshot could not be read');
      return otherwise;
    }
  }

  #enter(state: SnapshotState, reason?: string, details = {}): void {
    if (reason !== undefined && reason !== this.#stateReason) this.log.error(details, reason);
    if (reason === undefined && this.#stateReason !== undefined)
      this.log.info('the snapshot can be read again');
    if (state !== 'unreachable') this.#hasReachedElasticsearch = true;
    this.#state = state;
    this.#stateReason = reason;
  }
}
