import type { Redis } from 'ioredis';
import * as z from 'zod';
import { SCHEMA_VERSION } from '../../snapshot/index-names.js';
import { jsonText } from '../../util/json-text.js';
import type { Logger } from '../../util/log.js';
import { failure, type Failure } from './outcome.js';
import { progressReport, type ProgressReport } from './progress.js';

/** How often a running rebuild publishes its progress, and how long Redis keeps it, in milliseconds. */
const PUBLISH_MS = 500;
const STATUS_TTL_MS = 10_000;

/** Maximum length of a value, in bytes. Longer values are ignored. */
const MAX_VALUE_BYTES = 4096;

const success = z.object({ at: z.iso.datetime() });

/** The last part of a key in Redis. */
type Name = 'progress' | 'last-failure' | 'last-success' | `refresh-${number}`;

/**
 * Shares among all replicas, through Redis: the progress of the running rebuild, the last success and failure, and
 * claims of refreshes. Errors of Redis are logged, not thrown: a rebuild
 * must not fail because its status cannot be shared.
 */
export class StatusStore {
  constructor(
    private readonly redis: Redis,
    private readonly slug: string,
    private readonly log: Logger,
  ) {}

  /**
   * Publishes the result of `report` periodically until the returned function is called.
   * @param lost aborts when the lock is lost: from then on, nothing is written or removed.
   */
  publish(report: () => ProgressReport, lost: AbortSignal): () => Promise<void> {
    const write = async () => {
      if (lost.aborted) return;
      await this.#try(() =>
        this.redis.set(this.#key('progress'), JSON.stringify(report()), 'PX', STATUS_TTL_MS),
      );
    };
    let writing = write();
    const timer = setInterval(() => {
      writing = write();
    }, PUBLISH_MS);
    return async () => {
      clearInterval(timer);
      await writing;
      if (!lost.aborted) await this.#try(() => this.redis.del(this.#key('progress')));
    };
  }

  /** Progress of the running rebuild; undefined if none was published recently. */
  progress(): Promise<ProgressReport | undefined> {
    return this.#read('progress', progressReport);
  }

  /** Stores the failure of the last rebuild; undefined means that it succeeded. */
  async end(failed: Failure | undefined): Promise<void> {
    await this.#try<unknown>(() =>
      failed === undefined
        ? this.redis
            .multi()
            .del(this.#key('last-failure'))
            .set(this.#key('last-success'), JSON.stringify({ at: new Date().toISOString() }))
            .exec()
        : this.redis.set(this.#key('last-failure'), JSON.stringify(failed)),
    );
  }

  /** When a rebuild last succeeded (ISO 8601). */
  async lastSuccess(): Promise<string | undefined> {
    return (await this.#read('last-success', success))?.at;
  }

  /**
   * Claims the refresh of this interval for the caller. Until the interval is over, only the first caller succeeds.
   * Intervals of different lengths are claimed independently.
   * @returns undefined if Redis does not respond.
   */
  claimRefresh(intervalSeconds: number): Promise<boolean | undefined> {
    const key = this.#key(`refresh-${intervalSeconds}`);
    return this.#try(
      async () => (await this.redis.set(key, JSON.stringify({}), 'EX', intervalSeconds, 'NX')) !== null,
    );
  }

  lastFailure(): Promise<Failure | undefined> {
    return this.#read('last-failure', failure);
  }

  /** @returns undefined also for a value that is not of this schema. */
  async #read<T>(name: Name, schema: z.ZodType<T>): Promise<T | undefined> {
    const key = this.#key(name);
    const text = await this.#try(() => this.redis.getrange(key, 0, MAX_VALUE_BYTES));
    if (!text) return undefined;
    return jsonText.pipe(schema).safeParse(text).data;
  }

  #key(name: Name): string {
    return `${this.slug}:rebuild-v${SCHEMA_VERSION}:${name}`;
  }

  async #try<T>(call: () => Promise<T>): Promise<T | undefined> {
    try {
      return await call();
    } catch (error) {
      this.log.warn({ err: error }, 'the rebuild status could not be read or written in Redis');
      return undefined;
    }
  }
}
