import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@elastic/elasticsearch';
import type { Logger } from '../log.js';
import { describeAuthError } from '../clients/elasticsearch.js';
import { EngineUnavailableError, SearchRefusedError } from '../clients/engine-errors.js';
import {
  AmbiguousAliasError,
  findGeneration,
  isReadable,
  withAncestors,
  type Generation,
} from './generation.js';
import { previousAliasOf } from './index-names.js';
import { SharedRuns } from './shared-runs.js';

/** Poll interval of the alias, in milliseconds: the longest delay before a replica sees a flip. */
const POLL_MS = 1000;

/** Minimum time between two reads of both aliases, for snapshots that this replica does not know, in milliseconds. */
const REFRESH_ALL_INTERVAL_MS = 200;

/**
 * `absent`: Elasticsearch responds and has no complete index. `unreachable`: it does not respond, or rejects the
 * key. `unusable`: the alias points to several indices, or to one that is closed, that Elasticsearch refuses to search, or whose
 * `_meta` this version cannot read. In the last two states, the last known generation is kept.
 */
export const ENGINE_STATES = ['unknown', 'present', 'absent', 'unreachable', 'unusable'] as const;

export type EngineState = (typeof ENGINE_STATES)[number];

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

/** The snapshot is neither the current nor the previous one, or the changes since it are not available. */
export class SnapshotGoneError extends Error {
  override readonly name = 'SnapshotGoneError';
}

/** Tracks the current and the previous generation: polls every second, and on request. */
export class GenerationWatcher {
  #current: Generation | undefined;
  #previous: Generation | undefined;
  #state: EngineState = 'unknown';
  #stateReason: string | undefined;
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
    private readonly changesRetention: number,
  ) {}

  /** The last complete generation that was seen. It is kept while Elasticsearch is unavailable. */
  get current(): Generation | undefined {
    return this.#current;
  }

  /** The generation of a snapshot id, if it is the current or the previous one, as far as this replica knows. */
  find(snapshot: string): Generation | undefined {
    return [this.#current, this.#previous].find((generation) => generation?.snapshot === snapshot);
  }

  /**
   * The generation that reads are served from.
   * @throws {NotInitializedError} before the first is complete.
   * @throws {EngineUnavailableError} if Elasticsearch could not be read yet.
   */
  served(): Generation {
    if (this.#current !== undefined) return this.#current;
    throw this.#state === 'absent'
      ? new NotInitializedError('no snapshot has been loaded yet')
      : new EngineUnavailableError('no generation could be read yet');
  }

  /**
   * The generation of a snapshot; without an id, the current one. If the id is unknown, a flip may have been missed, so
   * the aliases are read once more.
   * @throws {SnapshotGoneError} {NotInitializedError} {EngineUnavailableError}
   */
  async select(snapshot: string | undefined): Promise<Generation> {
    if (snapshot === undefined) return this.served();
    if (this.find(snapshot) === undefined) await this.refreshAll();
    const found = this.find(snapshot);
    if (found !== undefined) return found;
    this.served();
    this.assertKnown();
    throw new SnapshotGoneError(snapshot);
  }

  /** @throws {EngineUnavailableError} if the generations may have changed since they were read. */
  assertKnown(): void {
    if (this.#state !== 'present') throw new EngineUnavailableError('no alias could be read');
  }

  get engine(): EngineState {
    return this.#state;
  }

  /** Why the state is `unreachable` or `unusable`, in one line for an operator. */
  get stateReason(): string | undefined {
    return this.#stateReason;
  }

  /**
   * Makes the engine `unusable` until this search of the current index, which Elasticsearch refused, succeeds; it is repeated at
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

  /** Reads the alias, after this call; after a flip, also that of the previous generation. Never throws: see `current`, `engine`. */
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
      const found = await findGeneration(this.client, this.alias);
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
      this.log.info({ index: found?.index, total: found?.meta.total }, 'serving another generation');
      // Usually right, and set before the alias is read because clients may already request it.
      this.#previous = this.#current;
      this.#current = found && withAncestors(found, this.changesRetention);
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
   * Finds the previous generation by its alias, if it can be served.
   * @param otherwise returned if the alias cannot be read: keys of earlier releases may lack the right.
   */
  async #findPrevious(otherwise: Generation | undefined): Promise<Generation | undefined> {
    try {
      const found = await findGeneration(this.client, previousAliasOf(this.alias));
      if (found === undefined || found.closed || !isReadable(found)) return undefined;
      return withAncestors(found, this.changesRetention);
    } catch (error) {
      this.log.debug({ err: error }, 'the previous generation could not be read');
      return otherwise;
    }
  }

  #enter(state: EngineState, reason?: string, details = {}): void {
    if (reason !== undefined && reason !== this.#stateReason) this.log.error(details, reason);
    if (reason === undefined && this.#stateReason !== undefined)
      this.log.info('the snapshot can be read again');
    this.#state = state;
    this.#stateReason = reason;
  }
}
