import { setTimeout as pause } from 'node:timers/promises';
import { makeQueries } from '../test/fixtures/queries.js';
import { pick, seededRandom } from '../test/fixtures/random.js';
import { percentile } from '../test/fixtures/statistics.js';
import { timed } from './goals.js';
import { searchPath } from './load.js';
import type { BaselineClient } from './measure.js';

/** Default duration of a measurement, in milliseconds. */
const DURATION_MS = 6000;
/** Interval between two searches, in milliseconds. */
const SEARCH_EVERY_MS = 20;

const random = seededRandom(20_261_123);

/**
 * The p99 of searches at a constant rate, in milliseconds.
 * @param names the names that they are made from.
 * @param work ends the measurement when it settles.
 */
export async function searchP99(
  client: BaselineClient,
  names: readonly string[],
  work: Promise<unknown> = pause(DURATION_MS),
): Promise<number> {
  const queries = makeQueries(names, 200);
  const times: Promise<number>[] = [];
  const state = { isOver: false };
  const ended = work.finally(() => (state.isOver = true));
  while (!state.isOver) {
    times.push(timed(client.get(searchPath(pick(random, queries)))));
    await pause(SEARCH_EVERY_MS);
  }
  await ended;
  return percentile(await Promise.all(times), 0.99);
}
