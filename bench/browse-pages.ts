import { interleaveRounds, type BaselineClient, type Round } from './measure.js';

const LIMIT = 200;
/** Number of different pages at either end. */
const PAGES = 5;

/**
 * Times the last pages of `/browse` and the first ones, in turns. The last page is the last full one.
 * @param names number of names that the server has.
 * @param requests number of requests to either end in each round.
 */
export function browseRounds(
  client: BaselineClient,
  names: number,
  requests: number,
  rounds: number,
): Promise<Round[]> {
  const last = Math.floor(names / LIMIT);
  const browse = (page: number) => client.get(`/browse?limit=${LIMIT}&page=${page}`);
  const offsets = Array.from({ length: requests }, (_, i) => i % PAGES);
  return interleaveRounds(
    offsets,
    [(offset) => browse(last - offset), (offset) => browse(1 + offset)],
    rounds,
  );
}
