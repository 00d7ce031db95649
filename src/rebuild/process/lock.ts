import type { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';
import { describeRedisError } from '../../clients/redis.js';
import type { Logger } from '../../log.js';

type MutexOptions = ConstructorParameters<typeof Mutex>[2];

/** Time to live of a lock whose process was killed, in milliseconds. */
const LOCK_MS = 10_000;

/** Renewals within that time. Two in a row may fail; with a third, the lock is lost. */
const RENEWALS = 4;

/** Redis is configured and cannot be used: it is unknown whether another replica is rebuilding. The message says why. */
export class LockUnavailableError extends Error {
  override readonly name = 'LockUnavailableError';
}

/** The lock expired or was taken over before the work was done. */
export class LockLostError extends Error {
  override readonly name = 'LockLostError';

  constructor() {
    super('the lock was lost: another replica may be rebuilding');
  }
}

/** The right to rebuild, until it is released or lost. */
export interface HeldLock {
  /** Identifies the rebuild that holds it, for `isHeldBy`. */
  readonly owner: string;
  /** Aborts when the lock is lost: another replica may have it. */
  readonly lost: AbortSignal;
  /**
   * Whether this process still holds it. After a suspension, `lost` may not have aborted yet; this aborts it if another
   * owner has the lock, or it has expired.
   * @throws {LockUnavailableError}
   */
  isStillHeld(): Promise<boolean>;
  /** Never throws: a lock that cannot be released expires. */
  release(): Promise<void>;
}

/** Without Redis, nothing keeps another process from rebuilding. */
export const UNSHARED_LOCK: HeldLock = {
  owner: 'this process',
  lost: new AbortController().signal,
  isStillHeld: () => Promise.resolve(true),
  release: () => Promise.resolve(),
};

/**
 * Lets one rebuild of a registry run at a time, across all replicas on one Redis: a key with an owner's token and a time to live,
 * renewed periodically.
 */
export class RebuildLock {
  /** @param lockMs time to live of a lock after its last renewal, in milliseconds. */
  constructor(
    private readonly redis: Redis,
    private readonly slug: string,
    private readonly log: Logger,
    private readonly lockMs = LOCK_MS,
  ) {}

  /** @returns undefined if another rebuild holds it. @throws {LockUnavailableError} */
  async acquire(): Promise<HeldLock | undefined> {
    const mutex = this.#mutex({ acquireAttemptsLimit: 1 });
    const asked = performance.now();
    const acquired = await mutex.tryAcquire().catch(async (error: unknown) => {
      // Redis may still execute a command that timed out. The release follows it on the same connection.
      await this.#mutex({ identifier: mutex.identifier, acquiredExternally: true })
        .release()
        .catch(() => undefined);
      return this.#throwUnavailable(error);
    });
    if (!acquired) return undefined;

    const lost = new AbortController();
    // Without a custom reason: the Elasticsearch client takes one for a broken connection, and retries.
    const lose = () => lost.abort();
    // By the clock of this process, so that it stops in time even if Redis is unavailable or was suspended.
    const until = (renewed: number) => setTimeout(lose, renewed + this.lockMs - performance.now());
    let deadline = until(asked);
    let renewing: Promise<void> | undefined;
    const renewal = setInterval(() => {
      const began = performance.now();
      renewing = this.#renew(mutex.identifier).then(
        (renewed) => {
          clearTimeout(deadline);
          if (renewed) deadline = until(began);
          else lose();
        },
        (error: unknown) => this.log.warn({ err: error }, 'the rebuild lock could not be renewed'),
      );
    }, this.lockMs / RENEWALS);
    const stop = () => {
      clearInterval(renewal);
      clearTimeout(deadline);
    };
    lost.signal.addEventListener('abort', stop);
    const release = async () => {
      clearInterval(renewal);
      // A renewal in flight would restart the deadline.
      await renewing;
      stop();
      await mutex.release().catch((error: unknown) => {
        this.log.warn({ err: error }, 'the rebuild lock could not be released; it will expire');
      });
    };
    const isStillHeld = async () => {
      if (!lost.signal.aborted && !(await this.isHeldBy(mutex.identifier))) lose();
      return !lost.signal.aborted;
    };
    return { owner: mutex.identifier, lost: lost.signal, isStillHeld, release };
  }

  /** Whether a rebuild holds it now. @throws {LockUnavailableError} */
  async isHeld(): Promise<boolean> {
    return (await this.redis.exists(this.#key).catch(this.#throwUnavailable)) === 1;
  }

  /** Whether this owner holds it. @throws {LockUnavailableError} */
  async isHeldBy(owner: string): Promise<boolean> {
    return (await this.redis.get(this.#key).catch(this.#throwUnavailable)) === owner;
  }

  readonly #throwUnavailable = (cause: unknown): never => {
    throw new LockUnavailableError(describeRedisError(cause, this.redis), { cause });
  };

  /** @returns false if another owner has the lock, or it has expired. */
  #renew(identifier: string): Promise<boolean> {
    return this.#mutex({ identifier, acquiredExternally: true }).tryAcquire();
  }

  get #key(): string {
    return `${this.slug}:rebuild:lock`;
  }

  /** Without the library's own renewal, which ends the process if Redis does not respond. */
  #mutex(options: MutexOptions): Mutex {
    return new KeyedMutex(this.redis, this.#key, {
      ...options,
      lockTimeout: this.lockMs,
      refreshInterval: 0,
    });
  }
}

/** Uses the key as given. The library would prepend `mutex:`, but all keys must begin with the slug. */
class KeyedMutex extends Mutex {
  constructor(redis: Redis, key: string, options: MutexOptions) {
    super(redis, key, options);
    this._key = key;
  }
}
