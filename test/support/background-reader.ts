import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { repeat } from './repeat.js';
import { totals } from './totals.js';
import type { TestResponse, Service, SuiteService } from './service.js';
import { waitFor } from './wait-for.js';

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

/** Pause between three reads, in milliseconds: readers must not take a processor from the rebuilds that they watch. */
const PAUSE_MS = 50;

/** The background reader of a suite. */
export interface BackgroundReader {
  /** While true, Elasticsearch may be down, and readers accept a 503 that says so. */
  engineMayBeAway: boolean;
  /** Times of these 503 responses, by `performance.now()`. */
  readonly away: readonly number[];
  /** Registers the test that asserts that all responses so far were good. Call it at the end of the suite. */
  itNoticesNothing(): void;
}

/**
 * Reads the service of the calling suite in loops while its tests run. Call it after `useService`.
 * @param packageCounts the numbers of packages that may be served.
 */
export function useBackgroundReader(
  suite: SuiteService,
  packageCounts: readonly number[],
  loops = 1,
): BackgroundReader {
  let reader: Reader | undefined;
  const reading: BackgroundReader = {
    engineMayBeAway: false,
    get away() {
      return reader?.away ?? [];
    },
    itNoticesNothing() {
      // In a suite of its own: mocha runs the tests of a suite before those of the suites in it.
      describe('and its readers', () => {
        it('get only good responses', async () => {
          await waitFor(() => (reader?.requests ?? 0) > 100, 'a hundred requests');
          await reader?.stop();
          totals.failedReads += reader?.failures.length ?? 0;
          expect(reader?.failures).to.deep.equal([]);
        });
      });
    },
  };
  before(() => {
    reader = new Reader(suite.service, packageCounts, loops, () => reading.engineMayBeAway);
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
  /** Ends the loops. */
  readonly stop: () => Promise<void>;

  constructor(
    private readonly service: Service,
    packageCounts: readonly number[],
    loops: number,
    private readonly engineMayBeAway: () => boolean,
  ) {
    this.stop = repeat(loops, async () => {
      await this.#read(`/search?q=${QUERY}&limit=5`, ({ count }) => count === 5);
      await this.#read('/browse?limit=5', ({ results }) => results.length === 5);
      await this.#read('/health', ({ total_packages }) => packageCounts.includes(total_packages as number));
      await pause(PAUSE_MS);
    });
  }

  async #read(path: string, isGood: (body: Body) => boolean): Promise<void> {
    this.requests++;
    totals.reads++;
    const couldBeAway = this.engineMayBeAway();
    try {
      const answer = await this.service.get(path);
      if (answer.status === 200 && isGood(answer.body as Body)) return;
      if ((couldBeAway || this.engineMayBeAway()) && saysAway(answer)) {
        this.away.push(performance.now());
        totals.readsAnsweredAway++;
      } else this.failures.push(`${path}: ${answer.status} ${answer.text.slice(0, 200)}`);
    } catch (error) {
      this.failures.push(`${path}: ${(error as Error).message}`);
    }
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
