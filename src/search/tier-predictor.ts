/** The share from which on it pays to ask for the first tier alone: what a second trip costs against what is spared. */
const THRESHOLD = 1 / 3;

/** How much of what is known each new search replaces. */
const LEARNING_RATE = 1 / 16;

/**
 * Learns how often the names that start with a query fill its answer, so that nothing else need be asked for. The shorter
 * a query and the larger the registry, the more often that is so.
 */
export class TierPredictor {
  /** By the length of queries, in UTF-16 units: near enough for odds. */
  readonly #share = new Map<number, number>();

  /** Whether the first tier alone is likely to fill the answer to a query of this length. */
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
