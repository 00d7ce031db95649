import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { describeRedisError } from '../../redis/redis.js';
import type { Logger } from '../../util/log.js';
import { SCHEMA_VERSION } from '../../snapshot/index-names.js';
import { LeaseTimer } from './lease-timer.js';

/** Time to live of a lock after its last renewal, in milliseconds. A killed process keeps the lock for this time. */
const LOCK_MS = 10_000;

/** Number of renewals within the time to live. The lock survives two failed renewals in a row. */
const RENEWALS = 4;

/** The scripts return 0 if another owner has the lock, or the lock has expired. */
const RENEW = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0";
const RELEASE = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

/** Redis cannot be used, so it is unknown whether another replica is rebuilding. The message gives the reason. */
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

export interface HeldLock {
  /** Identifies the rebuild that holds the lock, for `isHeldBy`. */
  readonly owner: string;
  /** Aborts when the lock is lost: another replica may have it. */
  readonly lost: AbortSignal;
  /**
   * Whether this process still holds the lock. After a suspension, `lost` may not have aborted yet. If another owner
   * has the lock, or the lock has expired, this call aborts `lost`.
   * @throws {LockUnavailableError}
   */
  isStillHeld(): Promise<boolean>;
  /** Never throws: a lock that cannot be released expires. */
  release(): Promise<void>;
}

/** Used without Redis. It does not keep other processes from rebuilding. */
export const UNSHARED_LOCK: HeldLock = {
  owner: 'this process',
  lost: new AbortController().signal,
  isStillHeld: () => Promise.resolve(true),
  release: () => Promise.resolve(),
};

/** Lets one rebuild of a registry run at a time, across all replicas on one Redis. */
export class RebuildLock {
  /** @param lockMs time to live of a lock after its last renewal, in milliseconds. */
  constructor(
    private readonly redis: Redis,
    private readonly slug: string,
    private readonly log: Logger,
    private readonly lockMs = LOCK_MS,
  ) {}

  /** @returns undefined if another rebuild holds the lock. @throws {LockUnavailableError} */
  async acquire(): Promise<HeldLock | undefined> {
    const owner = randomUUID();
    const asked = performance.now();
    const acquired = await this.redis
      .set(this.#key, owner, 'PX', this.lockMs, 'NX')
      .catch(async (error: unknown) => {
        // Redis may still execute the command after its timeout. The release is sent on the same connection, so Redis
        // executes it afterwards.
        await this.#release(owner).catch(() => undefined);
        return this.#throwUnavailable(error);
      });
    if (acquired === null) return undefined;

    const lease = new LeaseTimer(this.lockMs, asked);
    let renewing: Promise<void> | undefined;
    const renewal = setInterval(() => {
      const began = performance.now();
      renewing = this.redis.eval(RENEW, 1, this.#key, owner, this.lockMs).then(
        (renewed) => (renewed === 1 ? lease.extend(began) : lease.lose()),
        (error: unknown) => this.log.warn({ err: error }, 'the rebuild lock could not be renewed'),
      );
    }, this.lockMs / RENEWALS);
    lease.lost.addEventListener('abort', () => clearInterval(renewal));
    const release = async () => {
      clearInterval(renewal);
      // A renewal in flight would extend the lease.
      await renewing;
      lease.end();
      await this.#release(owner).catch((error: unknown) => {
        this.log.warn({ err: error }, 'the rebuild lock could not be released; it will expire');
      });
    };
    const isStillHeld = async () => {
      if (!lease.lost.aborted && !(await this.isHeldBy(owner))) lease.lose();
      return !lease.lost.aborted;
    };
    return { owner, lost: lease.lost, isStillHeld, release };
  }

  /** Whether any rebuild holds the lock now. @throws {LockUnavailableError} */
  async isHeld(): Promise<boolean> {
    return (await this.redis.exists(this.#key).catch(this.#throwUnavailable)) === 1;
  }

  /** Whether this owner holds the lock. @throws {LockUnavailableError} */
  async isHeldBy(owner: string): Promise<boolean> {
    return (await this.redis.get(this.#key).catch(this.#throwUnavailable)) === owner;
  }

  readonly #throwUnavailable = (cause: unknown): never => {
    throw new LockUnavailableError(describeRedisError(cause, this.redis), { cause });
  };

  #release(owner: string): Promise<unknown> {
    return this.redis.eval(RELEASE, 1, this.#key, owner);
  }

  get #key(): string {
    return `${this.slug}:rebuild-v${SCHEMA_VERSION}:lock`;
  }
}
