import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@elastic/elasticsearch';
import type { Logger } from '../util/log.js';
import { describeAuthError } from '../elasticsearch/elasticsearch.js';
import { ElasticsearchUnavailableError, SearchRefusedError } from '../elasticsearch/elasticsearch-errors.js';
import { AmbiguousAliasError, findIndex, isReadable, withChainLimit, type Snapshot } from './snapshot.js';
import { previousAliasOf } from './index-names.js';

/** Pause between two polls of the alias, in milliseconds. */
const POLL_MS = 1000;

/** Minimum time between two reads by `refreshAll`, in milliseconds. */
const REFRESH_ALL_INTERVAL_MS = 200;

/**
 * `absent`: Elasticsearch responds and has no complete index. `unreachable`: it does not respond, or rejects the key.
 * `unusable`: the alias points to several indices, or its index is closed, cannot be searched, or has a `_meta` that
 * this version cannot read. In the last two states, the last known snapshot is kept.
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
 * Why a snapshot is gone. `replaced`: it is neither the current nor the previous snapshot. `deleted`: its index was
 * deleted during the read. The other reasons are about the snapshot `since` of `/changes`. `expired`: it is older than
 * CHANGES_RETENTION allows. `changes_deleted`: the changes of a later snapshot were deleted, or their index was closed.
 * `not_filterable`: the changes of a later snapshot lack the fields that filters need. `not_in_chain`: the requested
 * snapshot does not descend from `since`.
 */
export type GoneReason =
  'replaced' | 'deleted' | 'expired' | 'changes_deleted' | 'not_filterable' | 'not_in_chain';

/** The snapshot, or the changes since this snapshot, cannot be read. */
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
  /**
   * `#lastRead` is the running read, or the last read if none is running. `#nextRead` begins after `#lastRead` has
   * ended. All waiting callers share `#nextRead`.
   */
  #lastRead = Promise.resolve();
  #nextRead: Promise<void> | undefined;
  #refreshingAll: Promise<void> | undefined;
  #refreshedAllAt = -Infinity;
  /** A search that Elasticsearch refused. Every poll repeats it until it succeeds. */
  #refused: (() => Promise<unknown>) | undefined;
  #stopped = false;

  constructor(
    private readonly client: Client,
    readonly alias: string,
    private readonly log: Logger,
    /** CHANGES_RETENTION */
    readonly changesRetention: number,
  ) {}

  /** The current snapshot; undefined if there is none. It is kept while Elasticsearch is unavailable. */
  get current(): Snapshot | undefined {
    return this.#current;
  }

  /** The current or the previous snapshot, if it has this id. */
  find(id: string): Snapshot | undefined {
    return [this.#current, this.#previous].find((snapshot) => snapshot?.id === id);
  }

  /**
   * The snapshot that reads are served from.
   * @throws {NotInitializedError} if Elasticsearch has no complete snapshot.
   * @throws {ElasticsearchUnavailableError} if there may be a snapshot, but it could not be read.
   */
  served(): Snapshot {
    if (this.#current !== undefined) return this.#current;
    throw this.#state === 'absent'
      ? new NotInitializedError('no snapshot has been loaded yet')
      : new ElasticsearchUnavailableError('no snapshot could be read yet');
  }

  /**
   * The snapshot with this id, or the current snapshot if `id` is undefined. If this replica does not know the id, it
   * reads the aliases once more, because it may have missed a flip.
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

  /** @throws {ElasticsearchUnavailableError} if the known snapshots may be outdated. */
  assertKnown(): void {
    if (this.#state !== 'present') throw new ElasticsearchUnavailableError('no alias could be read');
  }

  get state(): SnapshotState {
    return this.#state;
  }

  /**
   * Whether Elasticsearch has responded since this process started. A response counts even if there is no index. A
   * rejection of the API key does not count.
   */
  get hasReachedElasticsearch(): boolean {
    return this.#hasReachedElasticsearch;
  }

  /** Why the state is `unreachable` or `unusable`, in one line for an operator. */
  get stateReason(): string | undefined {
    return this.#stateReason;
  }

  /**
   * Called when Elasticsearch refuses a search. If `index` is the current index, repeats the search now, and in every
   * poll until it succeeds. If the search is refused again, the state is `unusable`.
   */
  onRefused(index: string, search: () => Promise<unknown>): void {
    if (this.#refused !== undefined || index !== this.#current?.index) return;
    this.#refused = search;
    void this.refresh();
  }

  /** Polls once, then every second until `stop()`. */
  async start(): Promise<void> {
    await this.refresh();
    if (!this.#stopped) this.#timer = setTimeout(() => void this.start(), POLL_MS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /**
   * Reads the alias; after a flip, also the alias of the previous snapshot. A running read is not reused: the read
   * begins after this call. Never throws: the outcome is in `current` and `state`.
   */
  refresh(): Promise<void> {
    this.#nextRead ??= this.#lastRead.then(() => {
      this.#nextRead = undefined;
      return (this.#lastRead = this.#readAliases());
    });
    return this.#nextRead;
  }

  /**
   * Reads both aliases, in case this replica has missed a flip. A running read is not reused: the read begins after
   * this call. The aliases are read at most once in 200 ms. Waiting calls share the next read.
   */
  refreshAll(): Promise<void> {
    const wait = Math.max(0, this.#refreshedAllAt + REFRESH_ALL_INTERVAL_MS - performance.now());
    this.#refreshingAll ??= pause(wait).then(async () => {
      this.#refreshingAll = undefined;
      this.#refreshedAllAt = performance.now();
      await this.refresh();
      // If Elasticsearch did not respond, a second read would only delay clients.
      if (this.#state === 'present') this.#previous = await this.#findPrevious(this.#previous);
    });
    return this.#refreshingAll;
  }

  async #readAliases(): Promise<void> {
    try {
      const found = await findIndex(this.client, this.alias);
      if (found !== undefined && (found.closed || !isReadable(found))) {
        this.#enter('unusable', found.closed ? CLOSED : UNREADABLE, { index: found.index });
        return;
      }
      if (found?.index === this.#current?.index) await this.#refused?.();
      this.#refused = undefined;
      this.#enter(found === undefined ? 'absent' : 'present');
      if (found?.index === this.#current?.index) return;
      this.log.info({ index: found?.index, total: found?.meta.total }, 'serving another snapshot');
      // After a flip, the current snapshot usually becomes the previous one. `#previous` is set before its alias is
      // read, because clients may already request this snapshot.
      this.#previous = this.#current;
      this.#current = found && withChainLimit(found, this.changesRetention);
      this.#previous = await this.#findPrevious(this.#previous);
    } catch (error) {
      if (error instanceof SearchRefusedError) this.#enter('unusable', REFUSED, { err: error });
      else if (error instanceof AmbiguousAliasError) this.#enter('unusable', error.message, { err: error });
      else {
        const refusal = describeAuthError(error, 'ELASTICSEARCH_API_KEY');
        this.#enter('unreachable', refusal ?? UNREACHABLE, { err: error });
      }
    }
  }

  /**
   * Finds the previous snapshot by its alias, if it can be served.
   * @param otherwise returned if the alias cannot be read: API keys that an earlier release created may lack the
   * privilege.
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
