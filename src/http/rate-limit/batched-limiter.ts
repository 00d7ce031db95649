import { REDIS_TIMEOUT_MS, type RateLimitState } from './failover-limiter.js';

/** A store that counts the points of clients. */
interface Counter {
  /** Uses points of a client. @param deadline when the store must have responded, by `performance.now()`. */
  consume(key: string, points: number, deadline: number): Promise<RateLimitState>;
  /** Sends in one write what `count` sends by calling `consume`. */
  batch(count: () => void): void;
}

/** A batch that takes longer does not delay the next one, in milliseconds: on a slow Redis, requests would miss their deadline. */
const MAX_WAIT_FOR_BATCH_MS = 10;

interface Waiting {
  deadline: number;
  resolve: (count: RateLimitState) => void;
  reject: (error: unknown) => void;
}

/**
 * Counts requests in batches: what arrives while one is in flight is in the next. A batch is one write, with one command
 * for each client. Each request gets the count that it would have got alone, in order of arrival.
 */
export class BatchedLimiter {
  /** Requests of the next batch, by the key of their client. */
  #waiting = new Map<string, Waiting[]>();
  /** A batch is in flight, or about to be sent. */
  #sending = false;

  constructor(private readonly counter: Counter) {}

  /** Counts one request. @throws what the store throws; that a budget is used up is no error. */
  add(key: string): Promise<RateLimitState> {
    return new Promise((resolve, reject) => {
      const request = { resolve, reject, deadline: performance.now() + REDIS_TIMEOUT_MS };
      const waiting = this.#waiting.get(key);
      if (waiting === undefined) this.#waiting.set(key, [request]);
      else waiting.push(request);
      if (this.#sending) return;
      this.#sending = true;
      // All requests that arrive in this turn of the event loop are in the first batch.
      setImmediate(() => void this.#send());
    });
  }

  async #send(): Promise<void> {
    while (this.#waiting.size > 0) {
      const batch = this.#waiting;
      this.#waiting = new Map();
      const counts: Promise<void>[] = [];
      this.counter.batch(() => {
        for (const [key, requests] of batch) counts.push(this.#count(key, requests));
      });
      await settledWithin(Promise.all(counts), MAX_WAIT_FOR_BATCH_MS);
    }
    this.#sending = false;
  }

  async #count(key: string, requests: Waiting[]): Promise<void> {
    // Of the request that has waited longest.
    const deadline = requests[0]?.deadline ?? 0;
    try {
      const { consumed, msBeforeNext } = await this.counter.consume(key, requests.length, deadline);
      const before = consumed - requests.length;
      for (const [i, { resolve }] of requests.entries()) resolve({ consumed: before + i + 1, msBeforeNext });
    } catch (error) {
      for (const { reject } of requests) reject(error);
    }
  }
}

/** Waits for a promise that never rejects, or until the time is over. */
async function settledWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  let late: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => (late = setTimeout(resolve, ms)));
  await Promise.race([promise, timeout]);
  clearTimeout(late);
}
