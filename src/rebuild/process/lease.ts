/**
 * A right that is lost some time after its last renewal, by the clock of this process, so that it is lost in time even if the
 * service that grants it is unavailable or was suspended.
 */
export class Lease {
  readonly #lost = new AbortController();
  #deadline: NodeJS.Timeout | undefined;

  /**
   * @param ms how long it holds after a renewal, in milliseconds.
   * @param requested when it was requested, as `performance.now()`: the service may have granted it at any moment since.
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
    // Without a custom reason: the Elasticsearch client takes one for a broken connection, and retries.
    this.#lost.abort();
  }

  /** Gives it up, so that it is no longer lost when its time is over. */
  end(): void {
    clearTimeout(this.#deadline);
  }
}
