import { REDIS_TIMEOUT_MS, type FailoverLimiter, type RateLimitState } from './failover-limiter.js';

/** After this time the next batch is sent without waiting for the one in flight, in milliseconds. */
export const MAX_BATCH_WAIT_MS = 10;

interface PendingRequest {
  points: number;
  deadline: number;
  resolve: (state: RateLimitState) => void;
  reject: (error: unknown) => void;
}

/**
 * Checks requests in batches: those that arrive while a batch is in flight form the next one. A batch is one
 * write to Redis with one command per client. Every request gets the state it would have got alone, in order
 * of arrival.
 */
export class BatchedLimiter {
  /** Requests of the next batch by client. */
  #pending = new Map<string, PendingRequest[]>();
  /** Whether a batch is in flight or about to be sent. */
  #isSending = false;

  constructor(
    private readonly limiter: Pick<FailoverLimiter, 'consume' | 'batch'>,
    private readonly maxBatchWaitMs = MAX_BATCH_WAIT_MS,
  ) {}

  /** Uses points of a client for one request. @throws what the limiter throws. */
  consume(key: string, points = 1): Promise<RateLimitState> {
    return new Promise((resolve, reject) => {
      const request = { points, resolve, reject, deadline: performance.now() + REDIS_TIMEOUT_MS };
      const pending = this.#pending.get(key);
      if (pending === undefined) this.#pending.set(key, [request]);
      else pending.push(request);
      if (this.#isSending) return;
      this.#isSending = true;
      // The first batch contains all requests that arrive in this iteration of the event loop.
      setImmediate(() => void this.#send());
    });
  }

  async #send(): Promise<void> {
    while (this.#pending.size > 0) {
      const batch = this.#pending;
      this.#pending = new Map();
      const settled: Promise<void>[] = [];
      this.limiter.batch(() => {
        for (const [key, requests] of batch) settled.push(this.#consume(key, requests));
      });
      // On a slow Redis, waiting longer would make the next requests miss their deadline.
      await settledWithin(Promise.all(settled), this.maxBatchWaitMs);
    }
    this.#isSending = false;
  }

  async #consume(key: string, requests: PendingRequest[]): Promise<void> {
    // The oldest request has the earliest deadline.
    const deadline = requests[0]?.deadline ?? 0;
    try {
      const total = requests.reduce((sum, { points }) => sum + points, 0);
      const state = await this.limiter.consume(key, total, deadline);
      let consumed = state.consumed - total;
      for (const { points, resolve } of requests) {
        consumed += points;
        resolve({ consumed, msBeforeNext: state.msBeforeNext });
      }
    } catch (error) {
      for (const { reject } of requests) reject(error);
    }
  }
}

/** Waits for a promise that never rejects, at most `ms`. */
async function settledWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([promise, timeout]);
  clearTimeout(timer);
}
