/**
 * Initial and maximum number of retries in the budget: twice the maximum number of searches in flight on three nodes.
 * If all nodes are slow, the budget is soon empty.
 */
const CAPACITY = 96;

/**
 * Retries earned by a quick response. While one node of three hangs, a search needs up to 0.75 retries on average: one
 * of three searches is sent to that node, and the other nodes forward some searches to it. In `npm run soak`, 0.5 was
 * not enough.
 */
const PER_QUICK_RESPONSE = 1;

/**
 * Limits the retries of slow searches. If one node hangs, quick responses of the others earn retries. If all nodes are
 * overloaded, no response is quick, and no retries are earned. Retries would then multiply the load.
 */
export class RetryBudget {
  #left = CAPACITY;

  /** Adds the retries that a quick response earns. */
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
