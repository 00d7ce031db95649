import { errors, type Client } from '@elastic/elasticsearch';
import type { Logger } from '../util/log.js';
import { describeAuthError } from '../elasticsearch/elasticsearch.js';
import { ElasticsearchUnavailableError } from '../elasticsearch/elasticsearch-errors.js';
import { hitsOf } from './name-order.js';
import { findServed, isReadable, UnusableAliasError, type Snapshot } from './snapshot.js';

/** Interval of polls, in milliseconds. */
const POLL_MS = 1000;

/**
 * `present`: the current snapshot can be searched. `absent`: Elasticsearch responds and has no complete index.
 * `unreachable`: it does not respond, or rejects the key. `unusable`: the alias points to several indices, or its index
 * is closed, has a `_meta` that this version cannot read, or Elasticsearch refuses to search it. In the last two
 * states, the last known snapshot is kept.
 */
export const SNAPSHOT_STATES = ['present', 'absent', 'unreachable', 'unusable'] as const;

export type SnapshotState = (typeof SNAPSHOT_STATES)[number];

const UNREACHABLE = 'Elasticsearch is unavailable at ELASTICSEARCH_URL';
const CLOSED = 'the index behind the alias is closed: open it, or rebuild';
const REFUSED =
  'Elasticsearch refuses searches: undo the setting of the cluster or of the index that its error names';
const UNREADABLE =
  'the index behind the alias was not written by this version of the service: deploy the version that wrote it, or rebuild';

export class NotInitializedError extends Error {
  override readonly name = 'NotInitializedError';
}

/**
 * Why a snapshot is gone. `replaced`: it is neither the current nor the previous snapshot. `deleted`: its index was
 * deleted during the read. The other reasons are about the snapshot `since` of `/changes`. `changes_deleted`: the
 * changes of a later snapshot were deleted, or their index was closed. `not_in_chain`: the changes from `since` to the
 * requested snapshot are not kept, or it does not descend from `since`.
 */
export type GoneReason = 'replaced' | 'deleted' | 'changes_deleted' | 'not_in_chain';

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
  #state: SnapshotState = 'unreachable';
  #stateReason: string | undefined;
  #hasReachedElasticsearch = false;
  /** Whether Elasticsearch has refused a search. Every poll then searches, too, until a search succeeds. */
  #isRefused = false;
  /** The running poll, or the last one. */
  #poll = Promise.resolve();
  /** The poll that begins once `#poll` has ended. All waiting callers share it. */
  #nextPoll: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly client: Client,
    readonly alias: string,
    private readonly log: Logger,
  ) {}

  /** The current snapshot; undefined if there is none. It is kept while Elasticsearch is unavailable. */
  get current(): Snapshot | undefined {
    return this.#current;
  }

  get state(): SnapshotState {
    return this.#state;
  }

  /** Why the state is `unreachable` or `unusable`, in one line for an operator. */
  get stateReason(): string | undefined {
    return this.#stateReason;
  }

  /** A response counts even if there is no index. A rejection of the API key does not count. */
  get hasReachedElasticsearch(): boolean {
    return this.#hasReachedElasticsearch;
  }

  find(id: string): Snapshot | undefined {
    return [this.#current, this.#previous].find((snapshot) => snapshot?.id === id);
  }

  /**
   * @throws {NotInitializedError} if Elasticsearch has no complete snapshot.
   * @throws {ElasticsearchUnavailableError} if there may be a snapshot, but it could not be read.
   */
  served(): Snapshot {
    if (this.#current === undefined) throw this.#whyUnknown();
    return this.#current;
  }

  /**
   * If this replica does not know the id, it polls once more, because it may have missed a flip. Otherwise the result is
   * no promise: most requests read the current snapshot.
   * @throws {SnapshotGoneError} {NotInitializedError} {ElasticsearchUnavailableError}
   */
  select(id: string | undefined): Snapshot | Promise<Snapshot> {
    if (id === undefined) return this.served();
    return this.find(id) ?? this.#findAfterPoll(id);
  }

  async #findAfterPoll(id: string): Promise<Snapshot> {
    await this.refresh();
    const found = this.find(id);
    if (found !== undefined) return found;
    this.assertKnown();
    throw new SnapshotGoneError(id, 'replaced');
  }

  /** @throws {NotInitializedError} {ElasticsearchUnavailableError} if the known snapshots may be outdated. */
  assertKnown(): void {
    if (this.#state !== 'present') throw this.#whyUnknown();
  }

  /** Called when Elasticsearch refuses a search. The state is `unusable` if it also refuses the search of a poll. */
  onRefused(): void {
    this.#isRefused = true;
  }

  /** Polls once, then every second until `stop()`. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.refresh(), POLL_MS);
    await this.refresh();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * Polls once. A running poll is not reused: the poll begins after this call. Waiting calls share the next poll. Never
   * throws: the outcome is in `current` and `state`.
   */
  refresh(): Promise<void> {
    this.#nextPoll ??= this.#poll.then(() => {
      this.#nextPoll = undefined;
      return (this.#poll = this.#readAliases());
    });
    return this.#nextPoll;
  }

  async #readAliases(): Promise<void> {
    try {
      const { current, previous } = await findServed(this.client, this.alias);
      const cause = new Error(current?.index);
      if (current?.closed === true) throw new UnusableAliasError(CLOSED, { cause });
      if (current !== undefined && !isReadable(current)) throw new UnusableAliasError(UNREADABLE, { cause });
      if (current?.index !== this.#current?.index) {
        this.log.info({ index: current?.index, total: current?.meta.total }, 'serving another snapshot');
        this.#current = current;
      }
      this.#previous = previous !== undefined && isReadable(previous) ? previous : undefined;
      if (this.#isRefused && current !== undefined) await assertSearchable(this.client, current);
      this.#isRefused = false;
      this.#enter(current === undefined ? 'absent' : 'present');
    } catch (error) {
      if (error instanceof UnusableAliasError) this.#enter('unusable', error.message, error);
      else
        this.#enter('unreachable', describeAuthError(error, 'ELASTICSEARCH_API_KEY') ?? UNREACHABLE, error);
    }
  }

  #enter(state: SnapshotState, reason?: string, error?: unknown): void {
    if (reason !== undefined && reason !== this.#stateReason) this.log.error({ err: error }, reason);
    if (reason === undefined && this.#stateReason !== undefined)
      this.log.info('the snapshot can be read again');
    if (state !== 'unreachable') this.#hasReachedElasticsearch = true;
    this.#state = state;
    this.#stateReason = reason;
  }

  #whyUnknown(): Error {
    return this.#state === 'absent'
      ? new NotInitializedError('no snapshot has been loaded yet')
      : new ElasticsearchUnavailableError('the alias could not be read');
  }
}

/** @throws {UnusableAliasError} if Elasticsearch refuses a search like those of clients. */
async function assertSearchable(client: Client, { index }: Snapshot): Promise<void> {
  const query = { range: { 'name.lowercase': { gte: 'a' } } };
  await client.search({ index, ...hitsOf(1, { query }) }).catch((cause: unknown) => {
    // 400: a setting forbids the query. 403: the index has a block, or the key lacks the privilege.
    if (cause instanceof errors.ResponseError && (cause.statusCode === 400 || cause.statusCode === 403))
      throw new UnusableAliasError(REFUSED, { cause });
    throw cause;
  });
}
