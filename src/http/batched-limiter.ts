import { PATIENCE_MS, type Count } from './insured-limiter.js';

/** A store that counts the points of clients. */
interface Counter {
  /** Uses points of a client. @param deadline when the store must have responded, by `performance.now()`. */
  consume(key: string, points: number, deadline: number): Promise<Count>;
  /** Sends in one write what `count` sends by calling `consume`. */
  batch(count: () => void): void;
}

interface Waiting {
  deadline: number;
  resolve: (count: Count) => void;
  reject: (error: unknown) => void;
}

/**
 * Counts requests in batches. The requests of one client that arrive in one turn of the event loop, or while an earlier
 * count of that client is in flight, share one command; the commands of all clients in one turn share one write. Each
 * request gets the count that it would have got alone, in order of arrival.
 */
export class BatchedLimiter {
  /** Requests that are not sent yet, by the key of their client. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #inFlight = new Set<string>();
  /** Clients whose requests are sent in the next turn: of those in flight, none is looked at until its count is back. */
  readonly #ready = new Set<string>();

  constructor(private readonly counter: Counter) {}

  /** Counts one request. @throws what the store throws; that a budget is used up is no error. */
  add(key: string): Promise<Count> {
    return new Promise((resolve, reject) => {
      const request = { resolve, reject, deadline: performance.now() + PATIENCE_MS };
      const waiting = this.#waiting.get(key);
      if (waiting === undefined) this.#waiting.set(key, [request]);
      else waiting.push(request);
      if (!this.#inFlight.has(key)) this.#schedule(key);
    });
  }

  #schedule(key: string): void {
    if (this.#ready.size === 0) setImmediate(() => this.counter.batch(() => this.#send()));
    this.#ready.add(key);
  }

  #send(): void {
    for (const key of this.#ready) {
      const requests = this.#waiting.get(key) ?? [];
      this.#waiting.delete(key);
      void this.#count(key, requests);
    }
    this.#ready.clear();
  }

  async #count(key: string, requests: Waiting[]): Promise<void> {
    this.#inFlight.add(key);
    // Of the request that has waited longest.
    const deadline = requests[0]?.deadline ?? 0;
    try {
      const { consumed, msBeforeNext } = await this.counter.consume(key, requests.length, deadline);
      const before = consumed - requests.length;
      for (const [i, { resolve }] of requests.entries()) resolve({ consumed: before + i + 1, msBeforeNext });
    } catch (error) {
      for (const { reject } of requests) reject(error);
    }
    this.#inFlight.delete(key);
    if (this.#waiting.has(key)) this.#schedule(key);
  }
}
