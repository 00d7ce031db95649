import { expect } from 'chai';
import type { TestResponse, Service, SuiteService } from './service.js';

/** What all readers of this run asked and got. */
export const readers = { requests: 0, failures: 0, answeredAway: 0 };

interface Body {
  status: unknown;
  code: unknown;
  count: number;
  results: unknown[];
  total_packages: unknown;
}

/** For a service whose readers are to reach Elasticsearch with every request. */
export const UNCACHED = { CACHE_MAX_BYTES: '0' };

/** A query that at least five names of every snapshot match that readers may see. */
const QUERY = 'lib';

/** What `useReader` gives to a suite. */
export interface BackgroundReader {
  /** While it is set, Elasticsearch may be away, and a 503 that says so is a good answer. */
  engineMayBeAway: boolean;
  /** When there were such answers, by `performance.now()`. */
  readonly away: readonly number[];
  /** To be called at the end of the suite: the test that says whether the reader noticed anything. */
  itNoticesNothing(): void;
}

/**
 * Reads the service of the suite that calls it, after `useService`, in loops while its tests run.
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
      it('is not noticed by readers', async () => {
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

/** Reads a service in loops, as its users do, and keeps every answer that is not as it should be. */
class Reader {
  requests = 0;
  readonly failures: string[] = [];
  /** When it was told that Elasticsearch is away, where it might be. */
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
