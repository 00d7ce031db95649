import { PATIENCE_MS, type Count } from './insured-limiter.js';

/** Uses points of a client in one trip to a store that answers until `deadline`, by `performance.now()`. */
interface Counter {
  consume(key: string, points: number, deadline: number): Promise<Count>;
}

interface Waiting {
  deadline: number;
  resolve: (count: Count) => void;
  reject: (error: unknown) => void;
}

/**
 * Counts requests, many of one client in one trip to the store: those that come in one turn of the event loop share it,
 * and those that come while it is under way share the next one. Each gets the count that it would have got by itself, in
 * the order of their coming.
 */
export class JointCount {
  /** By the key of each client for whom a trip is under way or about to begin: who goes with the next. */
  readonly #waiting = new Map<string, Waiting[]>();

  constructor(private readonly counter: Counter) {}

  /** Counts one request. @throws what the store throws; that a budget is used up is no error. */
  add(key: string): Promise<Count> {
    return new Promise((resolve, reject) => {
      const waiting = { resolve, reject, deadline: performance.now() + PATIENCE_MS };
      const next = this.#waiting.get(key);
      if (next !== undefined) {
        next.push(waiting);
        return;
      }
      this.#waiting.set(key, [waiting]);
      setImmediate(() => void this.#travel(key));
    });
  }

  async #travel(key: string): Promise<void> {
    for (let group = this.#take(key); group[0] !== undefined; group = this.#take(key)) {
      // Of the one that has waited longest.
      const { deadline } = group[0];
      try {
        const { consumed, msBeforeNext } = await this.counter.consume(key, group.length, deadline);
        const before = consumed - group.length;
        for (const [i, { resolve }] of group.entries()) resolve({ consumed: before + i + 1, msBeforeNext });
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#waiting.delete(key);
  }

  #take(key: string): Waiting[] {
    const group = this.#waiting.get(key) ?? [];
    this.#waiting.set(key, []);
    return group;
  }
}
