/**
 * A right that expires a fixed time after its last renewal was requested. This process measures the time itself,
 * because the service that grants the lease may be unavailable or suspended.
 */
export class LeaseTimer {
  readonly #lost = new AbortController();
  #deadline: NodeJS.Timeout | undefined;

  /**
   * @param ms duration of the lease after a renewal, in milliseconds.
   * @param requested when the lease was requested, as `performance.now()`. The service may have granted it at any later
   * moment.
   */
  constructor(
    private readonly ms: number,
    requested: number,
  ) {
    this.extend(requested);
  }

  /** Aborts when the lease expires, or when `lose` is called. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** @param requested when this renewal was requested, as `performance.now()`. */
  extend(requested: number): void {
    this.end();
    this.#deadline = setTimeout(() => this.lose(), requested + this.ms - performance.now());
  }

  lose(): void {
    this.end();
    // No custom reason is passed: the Elasticsearch client would treat such an abort as a broken connection, and retry.
    this.#lost.abort();
  }

  /** Stops the timer of the lease. The lease then no longer expires. */
  end(): void {
    clearTimeout(this.#deadline);
  }
}
