import type { Client } from '@elastic/elasticsearch';
import { createOnce, readIndexFile } from '../publish/create.js';
import { rebuildsIndexOf } from '../snapshot/index-names.js';
import { reasonOf } from './failure-reason.js';
import type { Phase, Report } from './progress.js';

/**
 * How the rebuild of a registry stands: the document `state`, which is also the lock. Times are milliseconds since 1970
 * by the clock of Elasticsearch. Operators and Kibana read these names.
 */
export interface RebuildState extends Partial<Report> {
  /** Identifies the rebuild that runs; absent if there is none. */
  owner?: string;
  /** Another rebuild may take the lock at this time, unless the owner reports before. */
  expires_at?: number;
  started_at?: number;
  /** Resident memory and processor time of the process. Absent until its first report. */
  memory_bytes?: number;
  cpu_seconds?: number;
  /** When the last rebuild began, whatever came of it. */
  last_check_at?: number;
  /** When a rebuild last succeeded, with or without changes. */
  last_success_at?: number;
  /** Absent after a success. */
  last_failure?: { at: number; reason: string };
}

/** A document of the history: a rebuild that has ended. Its id is the owner. */
export interface EndedRebuild {
  /** Absent if another rebuild had taken the lock. */
  started_at?: number;
  ended_at: number;
  outcome: 'rebuilt' | 'unchanged' | 'stopped' | 'failed';
  /** Why it failed. */
  reason?: string;
  /** The id of the new snapshot, and its number of packages. */
  snapshot?: string;
  packages?: number;
  /** Duration of each phase. */
  seconds?: Partial<Record<Phase, number>>;
}

/** How a rebuild ended. The times are added when it is recorded. */
export type Ending = Omit<EndedRebuild, 'started_at' | 'ended_at'>;

/** The state cannot be read or written: no rebuild can start. The message has the reason in one line. */
export class StateUnavailableError extends Error {
  override readonly name = 'StateUnavailableError';
}

/** Times of the lock, in milliseconds. */
const LOCK_TIMES = {
  /** The lock of an owner that does not report expires after this time. */
  expiry: 30_000,
  /** How often an owner reports. */
  report: 1000,
};

/** Options of reads and changes of a document. The timeout is in milliseconds; the next report tries again. */
const QUICKLY = { requestTimeout: 5000, maxRetries: 1 };

/** Number of ended rebuilds that are kept. */
const HISTORY = 200;

const STATE = 'state';

/** The members that outlive a rebuild. */
const LASTING = ['last_check_at', 'last_success_at', 'last_failure'];

// The sources are constant: Elasticsearch compiles each once. `none` leaves the document unchanged.

/** Unlike a read, an update waits for the shard of a new index. */
const LOOK = `ctx.op = 'none'`;
const ACQUIRE = `
  def s = ctx._source;
  boolean isHeld = s.owner != null && (s.owner == params.owner || s.expires_at > ctx._now);
  boolean isEarly = params.min_age != null && s.last_check_at != null && s.last_check_at + params.min_age > ctx._now;
  if (isHeld || isEarly) { ctx.op = 'none' } else {
    if (s.owner != null) {
      s.last_failure = ['at': ctx._now, 'reason': 'the rebuild process ended unexpectedly while ' + s.phase];
    }
    s.keySet().retainAll(params.lasting);
    s.owner = params.owner;
    s.expires_at = ctx._now + params.expiry;
    s.started_at = ctx._now;
    s.phase = params.phase;
    s.rows = 0;
    if (params.phase == 'downloading') { s.last_check_at = ctx._now }
  }`;
const REPORT = `
  if (ctx._source.owner != params.owner) { ctx.op = 'none' } else {
    ctx._source.putAll(params.report);
    ctx._source.expires_at = ctx._now + params.expiry;
  }`;
const RELEASE = `
  def s = ctx._source;
  if (s.owner != params.owner) { ctx.op = 'none' } else {
    s.keySet().retainAll(params.lasting);
    if (params.outcome == 'failed') { s.last_failure = ['at': ctx._now, 'reason': params.reason] }
    if (params.outcome == 'rebuilt' || params.outcome == 'unchanged') {
      s.last_success_at = ctx._now;
      s.remove('last_failure');
    }
  }`;

const RECORD = `
  ctx._source.putAll(params.ended);
  ctx._source.ended_at = ctx._now;`;

/** The state of one registry's rebuilds and their history, in the index `<slug>-rebuilds-v2`. */
export class RebuildStates {
  readonly #index: string;

  constructor(
    private readonly client: Client,
    slug: string,
    readonly times = LOCK_TIMES,
  ) {
    this.#index = rebuildsIndexOf(slug);
  }

  /**
   * Takes the lock if nobody has it, or it has expired. A repeated call of the same owner changes nothing.
   * @param minAgeMs the lock is taken only if the last rebuild began at least this long ago.
   * @returns the state: with this owner if it has the lock.
   * @throws {StateUnavailableError}
   */
  async acquire(
    owner: string,
    { minAgeMs, phase = 'downloading' }: { minAgeMs?: number | undefined; phase?: Phase } = {},
  ): Promise<RebuildState> {
    try {
      await createOnce(this.client, { index: this.#index, ...(await readIndexFile('rebuilds')) });
      const { state: before } = await this.#update(LOOK, {});
      const params = { owner, phase, min_age: minAgeMs ?? null, lasting: LASTING, expiry: this.times.expiry };
      const { state } = await this.#update(ACQUIRE, params);
      const { owner: killed, started_at } = before;
      if (state.owner === owner && killed !== undefined && killed !== owner) {
        const ended = { started_at, outcome: 'failed', reason: state.last_failure?.reason };
        // The lock is taken: it would stay so without a rebuild. Only the history lacks the end.
        await this.#record(killed, ended).catch(() => undefined);
      }
      return state;
    } catch (error) {
      throw new StateUnavailableError(reasonOf(error as Error), { cause: error });
    }
  }

  /** Renews the lock. @returns the state; undefined if this owner no longer has the lock. */
  async report(owner: string, report: Partial<RebuildState> = {}): Promise<RebuildState | undefined> {
    const { isOwner, state } = await this.#update(REPORT, { owner, report, expiry: this.times.expiry });
    return isOwner ? state : undefined;
  }

  /** Releases the lock, if this owner still has it, and records how the rebuild ended, if it was one. */
  async release(owner: string, ended?: Ending): Promise<void> {
    const { outcome = '', reason = '' } = ended ?? {};
    const { isOwner, state } = await this.#update(RELEASE, { owner, outcome, reason, lasting: LASTING });
    // `started_at` does not outlive the rebuild. `last_check_at` is the same time, and does.
    const started_at = isOwner ? state.last_check_at : undefined;
    if (ended !== undefined) await this.#record(owner, { started_at, ...ended });
  }

  /** @returns an empty state if no rebuild has ever begun. */
  async read(): Promise<RebuildState> {
    return (await this.#get<RebuildState>(STATE)) ?? {};
  }

  /** How the rebuild of this owner ended; undefined if it has not recorded that. */
  ended(owner: string): Promise<EndedRebuild | undefined> {
    return this.#get(owner);
  }

  /** The last ended rebuilds, newest first. */
  async history(size: number): Promise<EndedRebuild[]> {
    const found = await this.client.search<EndedRebuild>({
      index: this.#index,
      ignore_unavailable: true,
      query: { exists: { field: 'ended_at' } },
      sort: { ended_at: 'desc' },
      size,
    });
    return found.hits.hits.flatMap(({ _source: one }) => (one === undefined ? [] : [one]));
  }

  /** @returns `isOwner` is false if the script has changed nothing. */
  async #update(source: string, params: object, id = STATE) {
    const request = {
      index: this.#index,
      id,
      script: { lang: 'painless', source, params },
      scripted_upsert: true,
      upsert: {},
      retry_on_conflict: 5,
      refresh: id !== STATE,
      _source: true,
    };
    const { result, get } = await this.client.update<RebuildState, never, RebuildState>(request, QUICKLY);
    return { isOwner: result !== 'noop', state: get?._source ?? {} };
  }

  /** Adds a document to the history, and deletes the oldest one beyond `HISTORY`. */
  async #record(owner: string, ended: object): Promise<void> {
    await this.#update(RECORD, { ended }, owner);
    const [oldest] = (await this.history(HISTORY + 1)).slice(HISTORY);
    if (oldest === undefined) return;
    const query = { range: { ended_at: { lte: oldest.ended_at } } };
    await this.client.deleteByQuery({ index: this.#index, query, conflicts: 'proceed' });
  }

  async #get<T>(id: string): Promise<T | undefined> {
    const options = { ...QUICKLY, ignore: [404] };
    const { found, _source } = await this.client.get<T>({ index: this.#index, id }, options);
    return found ? _source : undefined;
  }
}
