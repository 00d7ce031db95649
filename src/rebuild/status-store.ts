import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Logger } from '../log.js';
import { PHASES, type ProgressReport } from './progress.js';

/** How often a running rebuild says how far it is, and how long that is believed, in milliseconds. */
const PUBLISH_MS = 500;
const BELIEVED_MS = 10_000;

/** Version of what is shared; raised when replicas of the version before would misunderstand it. */
const VERSION = 1;

const progressReport: z.ZodType<ProgressReport> = z.object({
  phase: z.enum(PHASES),
  rows: z.number(),
  total: z.number().optional(),
  bytes: z.number().optional(),
  totalBytes: z.number().optional(),
  startedAt: z.string(),
});

const json = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue('is not JSON');
    return z.NEVER;
  }
});

/** Replicas of the version before wrote no version. */
const envelope = z.looseObject({ version: z.literal(VERSION).optional() });

function shared(value: object): string {
  return JSON.stringify({ version: VERSION, ...value });
}

/** Why the last rebuild failed. */
export interface Failure {
  /** ISO 8601. */
  at: string;
  reason: string;
}

const failure: z.ZodType<Failure> = z.object({ at: z.string(), reason: z.string() });

/** Where a rebuild tells all replicas how far it is, and how it ended. */
export interface Board {
  /** Tells what `report` gives, again and again until the returned function is called. */
  follow(report: () => ProgressReport): () => Promise<void>;
  /** How far the running rebuild is; undefined where none has said anything lately. */
  progress(): Promise<ProgressReport | undefined>;
  /** Keeps why the last rebuild failed; undefined after one that succeeded. */
  end(failure: Failure | undefined): Promise<void>;
  lastFailure(): Promise<Failure | undefined>;
}

/**
 * On Redis. What cannot be told is logged, not thrown: a rebuild does not fail for want of listeners.
 */
export class SharedBoard implements Board {
  readonly #progressKey: string;
  readonly #failureKey: string;

  constructor(
    private readonly redis: Redis,
    slug: string,
    private readonly log: Logger,
  ) {
    this.#progressKey = `${slug}:rebuild:progress`;
    this.#failureKey = `${slug}:rebuild:last-failure`;
  }

  follow(report: () => ProgressReport): () => Promise<void> {
    const tell = () =>
      this.#try(() => this.redis.set(this.#progressKey, shared(report()), 'PX', BELIEVED_MS));
    let telling = tell();
    const timer = setInterval(() => {
      telling = tell();
    }, PUBLISH_MS);
    return async () => {
      clearInterval(timer);
      await telling;
      await this.#try(() => this.redis.del(this.#progressKey));
    };
  }

  progress(): Promise<ProgressReport | undefined> {
    return this.#read(this.#progressKey, progressReport);
  }

  async end(failed: Failure | undefined): Promise<void> {
    await this.#try<unknown>(() =>
      failed === undefined
        ? this.redis.del(this.#failureKey)
        : this.redis.set(this.#failureKey, shared(failed)),
    );
  }

  lastFailure(): Promise<Failure | undefined> {
    return this.#read(this.#failureKey, failure);
  }

  /** @returns undefined also for what another version has written, such as a phase that this one does not know. */
  async #read<T>(key: string, schema: z.ZodType<T>): Promise<T | undefined> {
    const text = await this.#try(() => this.redis.get(key));
    if (!text) return undefined;
    const sent = json.pipe(envelope).safeParse(text);
    const parsed = sent.success ? schema.safeParse(sent.data) : sent;
    if (!parsed.success) this.log.debug({ key, err: parsed.error }, 'written by another version: ignored');
    return parsed.data;
  }

  async #try<T>(call: () => Promise<T>): Promise<T | undefined> {
    try {
      return await call();
    } catch (error) {
      this.log.warn({ err: error }, 'the state of the rebuild could not be shared');
      return undefined;
    }
  }
}

/** Within this process: for a single replica without Redis. */
export class OwnBoard implements Board {
  #report: (() => ProgressReport) | undefined;
  #failure: Failure | undefined;

  follow(report: () => ProgressReport): () => Promise<void> {
    this.#report = report;
    return () => {
      this.#report = undefined;
      return Promise.resolve();
    };
  }

  progress(): Promise<ProgressReport | undefined> {
    return Promise.resolve(this.#report?.());
  }

  end(failed: Failure | undefined): Promise<void> {
    this.#failure = failed;
    return Promise.resolve();
  }

  lastFailure(): Promise<Failure | undefined> {
    return Promise.resolve(this.#failure);
  }
}
