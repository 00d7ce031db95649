import { LRUCache } from 'lru-cache';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { RateLimitPolicy, RateLimitState } from './windows.js';

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

  /** Adds points of a client if they fit into the limit. A check of 0 points passes if the client has points left. */
  async take(client: string, points: number): Promise<RateLimitState> {
    this.#clients.set(client, true);
    try {
      const { consumedPoints: used, msBeforeNext: msLeft } = await this.#limiter.consume(client, points);
      return { allowed: points > 0 || used < this.#limiter.points, used, msLeft };
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) throw rejection;
      // The library has added the points, so they are returned.
      await this.#limiter.reward(client, points);
      return { allowed: false, used: rejection.consumedPoints - points, msLeft: rejection.msBeforeNext };
    }
  }
}
