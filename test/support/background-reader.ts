import { expect } from 'chai';
import type { TestResponse, Service, SuiteService } from './service.js';

/** Totals of all readers of this run. */
export const readers = { requests: 0, failures: 0, answeredAway: 0 };

interface Body {
  status: unknown;
  code: unknown;
  count: number;
  results: unknown[];
  total_packages: unknown;
}

/** Environment of a service whose readers must reach Elasticsearch with every request. */
export const UNCACHED = { CACHE_MAX_BYTES: '0' };

/** Matches at least five names of every snapshot that readers may see. */
const QUERY = 'lib';

/** The background reader of a suite. */
export interface BackgroundReader {
  /** While true, Elasticsearch may be down, and readers accept a 503 that says so. */
  engineMayBeAway: boolean;
  /** Times of these 503 responses, by `performance.now()`. */
  readonly away: readonly number[];
  /** Registers the test that asserts that all responses were good. Call it at the end of the suite. */
  itNoticesNothing(): void;
}

/**
 * Reads the service of the calling suite in loops while its tests run. Call it after `useService`.
 * @param totals the numbers of packages that may be served.
 */
export function useBackgroundReader(
  suite: SuiteService,
  totals: readonly number[],
  loops = 1,
): BackgroundReader {
  let reader: Reader | undefined;
  const reading: BackgroundReader = {
    engineMayBeAway: false,
    get away() {
      return reader?.away ?? [];
    },
    itNoticesNothing() {
      it('must not disrupt readers', async () => {
        await reader?.stop();
        expect(reader?.failures).to.deep.equal([]);
        expect(reader?.requests).to.be.greaterThan(100);
      });
    },
  };
  before(() => {
    reader = new Reader(suite.service, totals, loops, () => reading.engineMayBeAway);
  });
  after(() => reader?.stop());
  return reading;
}

/** Reads a service in loops, as its users do, and records every unexpected response. */
class Reader {
  requests = 0;
  readonly failures: string[] = [];
  /** Times of accepted 503 responses. */
  readonly away: number[] = [];
  #stopped = false;
  readonly #done: Promise<unknown>;

  constructor(
    private readonly service: Service,
    private readonly totals: readonly number[],
    loops: number,
    private readonly engineMayBeAway: () => boolean,
  ) {
    this.#done = Promise.all(Array.from({ length: loops }, () => this.#loop()));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }

  async #loop(): Promise<void> {
    while (!this.#stopped) {
      await this.#read(`/search?q=${QUERY}&limit=5`, ({ count }) => count === 5);
      await this.#read('/browse?limit=5', ({ results }) => results.length === 5);
      await this.#read('/health', ({ total_packages }) => this.totals.includes(total_packages as number));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async #read(path: string, isGood: (body: Body) => boolean): Promise<void> {
    this.requests++;
    readers.requests++;
    const couldBeAway = this.engineMayBeAway();
    try {
      const answer = await this.service.get(path);
      if (answer.status === 200 && isGood(answer.body as Body)) return;
      if ((couldBeAway || this.engineMayBeAway()) && saysAway(answer)) {
        this.away.push(performance.now());
        readers.answeredAway++;
      } else this.#fail(`${path}: ${answer.status} ${answer.text.slice(0, 200)}`);
    } catch (error) {
      this.#fail(`${path}: ${(error as Error).message}`);
    }
  }

  #fail(failure: string): void {
    this.failures.push(failure);
    readers.failures++;
  }
}

function saysAway({ status, headers, body }: TestResponse): boolean {
  const { status: health, code } = body as Body;
  return (
    status === 503 &&
    headers.has('Retry-After') &&
    (health === 'unavailable' || code === 'search_unavailable')
  );
}
