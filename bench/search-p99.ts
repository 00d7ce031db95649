import { setTimeout as pause } from 'node:timers/promises';
import { makeQueries } from '../test/fixtures/queries.js';
import { pick, seededRandom } from '../test/fixtures/random.js';
import { percentile } from '../test/fixtures/statistics.js';
import { timed } from './goals.js';
import { searchPath } from './load.js';
import type { BaselineClient } from './measure.js';

/** Duration of one measurement, in milliseconds. */
const DURATION_MS = 6000;
/** Interval between two searches, in milliseconds. */
const SEARCH_EVERY_MS = 20;

const random = seededRandom(20_261_123);

/** The p99 of searches at a constant rate, in milliseconds. @param names the names that they are made from. */
export async function searchP99(client: BaselineClient, names: readonly string[]): Promise<number> {
  const queries = makeQueries(names, 200);
  const times: Promise<number>[] = [];
  for (let i = 0; i < DURATION_MS / SEARCH_EVERY_MS; i++) {
    times.push(timed(client.get(searchPath(pick(random, queries)))));
    await pause(SEARCH_EVERY_MS);
  }
  return percentile(await Promise.all(times), 0.99);
}
