import { unavailable } from '../http/problem.js';

const RETRY_AFTER_SECONDS = 1;

interface ConcurrencyLimiterOptions {
  /** How many tasks run at the same time. */
  running: number;
  /** How many more may wait for their turn. */
  waiting: number;
}

/**
 * Lets only so many tasks through at a time. What finds the queue full is refused at once: under overload a quick no is
 * worth more than an answer after everybody has given up.
 */
export class ConcurrencyLimiter {
  #running = 0;
  #refused = 0;
  readonly #queue: (() => void)[] = [];

  constructor(private readonly options: ConcurrencyLimiterOptions) {}

  /** Tasks under way. */
  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** How many have found the queue full so far. */
  get refused(): number {
    return this.#refused;
  }

  /** Runs a task in its turn. @throws {Problem} 503 with `Retry-After` where the queue is full. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running >= this.options.running) {
      if (this.#queue.length >= this.options.waiting) {
        this.#refused++;
        throw unavailable('search_unavailable', 'too many searches at the moment', RETRY_AFTER_SECONDS);
      }
      // Who leaves hands its place to the first in the queue, so that nobody can slip in between.
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    } else {
      this.#running++;
    }
    try {
      return await task();
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
