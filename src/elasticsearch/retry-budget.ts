/**
 * Retries of a process that has just started, and at most in a row: twice the searches in flight on three nodes. They are
 * soon spent if all nodes are slow.
 */
const CAPACITY = 96;

/**
 * Retries earned by a quick response. While one node of three hangs, a search needs up to 0.75 on average: one of three is
 * sent to it, and the other two forward some; measured with `npm run soak`, 0.5 was not enough.
 */
const PER_QUICK_RESPONSE = 1;

/**
 * Limits the retries of searches that are slow. If one node hangs, the others respond quickly and pay for them. If all
 * nodes are overloaded, nothing is quick: retries would multiply the load that made them slow, and it would never end.
 */
export class RetryBudget {
  #left = CAPACITY;

  /** Adds to the budget. */
  earn(): void {
    this.#left = Math.min(CAPACITY, this.#left + PER_QUICK_RESPONSE);
  }

  /** Takes one retry. @returns false if none is left. */
  take(): boolean {
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
