import { LRUCache } from 'lru-cache';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

/** Points of each client in a fixed window of time. The window begins with the client's first request. */
export interface RateLimitPolicy {
  /** Names the policy in headers, metrics and Redis keys. */
  name: string;
  points: number;
  windowSeconds: number;
  /** Whether a client that used up its points while Redis was down stays blocked when Redis is back. */
  isLockout?: true;
}

/** The window of one client after a check. */
export interface RateLimitState {
  /** Whether the points of the check fitted into the limit; if not, none were added. */
  allowed: boolean;
  /** Points used in this window. */
  used: number;
  /** Milliseconds until the window ends. */
  msLeft: number;
}

/** Maximum number of clients; each takes 760 bytes. Beyond it, the least recently seen clients begin a new window. */
const MAX_CLIENTS = 20_000;

/** Windows in the memory of this process. */
export class LocalWindows {
  readonly #limiter: RateLimiterMemory;
  readonly #clients: LRUCache<string, true>;

  constructor({ points, windowSeconds }: RateLimitPolicy) {
    this.#limiter = new RateLimiterMemory({ points, duration: windowSeconds });
    this.#clients = new LRUCache({
      max: MAX_CLIENTS,
      dispose: (_value, client) => void this.#limiter.delete(client),
    });
  }

  /**
   * Adds points to the window of a client if they fit into the limit. A check of 0 points passes if the client has
   * points left.
   */
  async take(client: string, points: number): Promise<RateLimitState> {
    this.#clients.set(client, true);
    try {
      const { consumedPoints: used, msBeforeNext: msLeft } = await this.#limiter.consume(client, points);
      return { allowed: points > 0 || used < this.#limiter.points, used, msLeft };
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) throw rejection;
      // The library has added the points although they did not fit. `reward` subtracts them.
      await this.#limiter.reward(client, points);
      return { allowed: false, used: rejection.consumedPoints - points, msLeft: rejection.msBeforeNext };
    }
  }
}
