/**
 * Runs a task for several callers, one run at a time. Each caller gets a run that began after its call. Waiting callers
 * share the next run.
 */
export class SharedRuns {
  #current: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(private readonly task: () => Promise<void>) {}

  run(): Promise<void> {
    if (this.#current === undefined) {
      this.#current = this.task().finally(() => (this.#current = undefined));
      return this.#current;
    }
    this.#next ??= this.#current.then(() => {
      this.#next = undefined;
      return this.run();
    });
    return this.#next;
  }
}
