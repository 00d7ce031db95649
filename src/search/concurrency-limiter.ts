import { CONNECTIONS_PER_NODE } from '../elasticsearch/search-pool.js';

/** Maximum number of queued searches: about half a second of work. */
const MAX_WAITING_SEARCHES = 256;

/** Per node and replica. The slowest take as long as dozens of others, and a node runs 1.5 searches per processor. */
const SIMILAR_PER_NODE = 1;

/** Maximum number of queued look-alike searches: about half a second of work. */
const MAX_WAITING_SIMILAR = 32;

export type SearchLimiters = ReturnType<typeof createSearchLimiters>;

/**
 * Limits of a replica. Look-alike searches cost much more than other searches and must not displace them.
 * @param nodes number of Elasticsearch nodes.
 */
export function createSearchLimiters(nodes: number) {
  return {
    search: new ConcurrencyLimiter({ running: CONNECTIONS_PER_NODE * nodes, waiting: MAX_WAITING_SEARCHES }),
    similar: new ConcurrencyLimiter({ running: SIMILAR_PER_NODE * nodes, waiting: MAX_WAITING_SIMILAR }),
  };
}

export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

/** Rejects tasks at once if the queue is full: a fast error is better than a response after the client's timeout. */
export class ConcurrencyLimiter {
  running = 0;
  /** Number of tasks rejected so far, because the queue was full. */
  refused = 0;
  readonly #queue: (() => void)[] = [];

  constructor(private readonly limits: { running: number; waiting: number }) {}

  get waiting(): number {
    return this.#queue.length;
  }

  /** Waits for a slot, which the task must `release` when it ends. @throws {OverloadedError} if the queue is full. */
  async acquire(): Promise<void> {
    if (this.running < this.limits.running) {
      this.running++;
      return;
    }
    if (this.#queue.length >= this.limits.waiting) {
      this.refused++;
      throw new OverloadedError('the queue is full');
    }
    await new Promise<void>((resolve) => this.#queue.push(resolve));
  }

  /** Hands the slot to the first task in the queue, so no new task can overtake a queued task. */
  release(): void {
    const next = this.#queue.shift();
    if (next === undefined) this.running--;
    else next();
  }
}
