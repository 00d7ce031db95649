/** Share of full first tiers above which requesting the first tier alone costs less on average. */
const THRESHOLD = 1 / 3;

/** Weight of each new search in the moving average. */
const LEARNING_RATE = 1 / 16;

/**
 * Learns how often names that start with a query fill the response, so that the second tier is not needed.
 * This is more frequent for short queries and large registries.
 */
export class TierPredictor {
  /** Moving averages by the length of queries in UTF-16 units, which is accurate enough. */
  readonly #share = new Map<number, number>();

  /** Whether the first tier alone is likely to fill the response to a query of this length. */
  firstTierSuffices(length: number): boolean {
    return this.#shareOf(length) > THRESHOLD;
  }

  record(length: number, full: boolean): void {
    const share = this.#shareOf(length);
    this.#share.set(length, share + (Number(full) - share) * LEARNING_RATE);
  }

  #shareOf(length: number): number {
    return this.#share.get(length) ?? 0;
  }
}
