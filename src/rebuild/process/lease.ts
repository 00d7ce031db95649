/**
 * A right that expires some time after its last renewal. It expires by the clock of this process, even if the service
 * that grants it is unavailable or was suspended.
 */
export class Lease {
  readonly #lost = new AbortController();
  #deadline: NodeJS.Timeout | undefined;

  /**
   * @param ms duration after a renewal, in milliseconds.
   * @param requested time of the request, as `performance.now()`: the service may have granted the lease at any moment
   * since.
   */
  constructor(
    private readonly ms: number,
    requested: number,
  ) {
    this.renew(requested);
  }

  /** Aborts when it is lost. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** @param requested when this renewal was requested, as `performance.now()`. */
  renew(requested: number): void {
    this.end();
    this.#deadline = setTimeout(() => this.lose(), requested + this.ms - performance.now());
  }

  lose(): void {
    this.end();
    // No custom reason is passed: the Elasticsearch client would treat it as a broken connection, and retry.
    this.#lost.abort();
  }

  /** Ends the lease, so that `lost` does not abort any more. */
  end(): void {
    clearTimeout(this.#deadline);
  }
}
