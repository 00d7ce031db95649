import { setTimeout as pause } from 'node:timers/promises';
import { Agent, request } from 'undici';

/** Requests in flight, each on its own keep-alive connection. */
const CONNECTIONS = 8;
/** Pause after each request, so that what is tested gets most of the processor, in milliseconds. */
const PAUSE_MS = 30;
/** A request that takes longer has failed, in milliseconds. */
const TIMEOUT_MS = 10_000;
const PATHS = ['/search?q=lib&limit=5', '/browse?page=7&limit=5', '/stats', '/health', '/ping'];

/** Sends about 200 requests per second to one address until stopped, and records responses other than 200. */
export class LoadGenerator {
  requests = 0;
  readonly failures: string[] = [];
  #stopped = false;
  readonly #agent = new Agent({ connections: CONNECTIONS });
  readonly #done: Promise<unknown>;

  constructor(private readonly url: string) {
    this.#done = Promise.all(Array.from({ length: CONNECTIONS }, (_, first) => this.#loop(first)));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
    await this.#agent.close();
  }

  async #loop(first: number): Promise<void> {
    for (let i = first; !this.#stopped; i++) {
      await pause(PAUSE_MS);
      const path = PATHS[i % PATHS.length] ?? '/';
      this.requests++;
      try {
        const { statusCode, body } = await request(`${this.url}${path}`, {
          dispatcher: this.#agent,
          headersTimeout: TIMEOUT_MS,
          bodyTimeout: TIMEOUT_MS,
        });
        const text = await body.text();
        if (statusCode !== 200) this.failures.push(`${path}: ${statusCode} ${text.slice(0, 200)}`);
      } catch (error) {
        this.failures.push(`${path}: ${(error as Error).message}`);
      }
    }
  }
}
