/** The limit of running and waiting tasks is reached. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

/**
 * Limits the number of concurrent tasks. If the queue is full, a task is rejected at once: under overload, a fast error
 * is better than a response after the client's timeout.
 */
export class ConcurrencyLimiter {
  /** Number of running tasks. */
  running = 0;
  /** Number of tasks rejected so far, because the queue was full. */
  refused = 0;
  readonly #queue: (() => void)[] = [];

  /** @param limits maximum numbers of running and waiting tasks. */
  constructor(private readonly limits: { running: number; waiting: number }) {}

  get waiting(): number {
    return this.#queue.length;
  }

  /** Runs a task when a slot is free. @throws {OverloadedError} if the queue is full. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.running >= this.limits.running) {
      if (this.#queue.length >= this.limits.waiting) {
        this.refused++;
        throw new OverloadedError('the queue is full');
      }
      // A finished task hands its slot to the first task in the queue, so no new task can overtake a queued task.
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    } else {
      this.running++;
    }
    try {
      return await task();
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.running--;
      else next();
    }
  }
}
