/** Runs a task for several callers, one run at a time. Each gets a run that began after its call, and those that wait share one. */
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
