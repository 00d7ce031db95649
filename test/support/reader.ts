import type { Service } from './service.js';

/** Reads a service in a loop, as its users do, and keeps every answer that is not as it should be. */
export class Reader {
  requests = 0;
  readonly failures: string[] = [];
  #stopped = false;
  readonly #done: Promise<void>;

  /** @param totals the numbers of packages that may be served. @param query one that names in each of them match. */
  constructor(
    private readonly service: Service,
    private readonly totals: readonly number[],
    private readonly query: string,
  ) {
    this.#done = this.#loop();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }

  async #loop(): Promise<void> {
    while (!this.#stopped) {
      await this.#read(`/search?q=${this.query}&limit=5`, ({ count }) => count === 5);
      await this.#read('/browse?limit=5', ({ results }) => results.length === 5);
      await this.#read('/health', ({ total_packages }) => this.totals.includes(total_packages as number));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async #read(
    path: string,
    isGood: (body: { count: number; results: unknown[]; total_packages: unknown }) => boolean,
  ): Promise<void> {
    this.requests++;
    try {
      const { status, text, body } = await this.service.get(path);
      if (status !== 200 || !isGood(body as never))
        this.failures.push(`${path}: ${status} ${text.slice(0, 200)}`);
    } catch (error) {
      this.failures.push(`${path}: ${(error as Error).message}`);
    }
  }
}
