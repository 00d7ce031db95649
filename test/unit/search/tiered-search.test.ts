import { expect } from 'chai';
import { searchTierByTier } from '../../../src/search/tiered-search.js';
import type { Hits } from '../../../src/clients/msearch-response.js';
import type { SearchBody } from '../../../src/clients/msearch.js';
import { searchTiers } from '../../../src/search/queries.js';

const LIMIT = 3;
const [FIRST, SECOND] = searchTiers('lib', LIMIT + 1, 1);

/** Searches tiers of these numbers of names, the first name being exact, and records the searches. */
async function search(first: number, second: number, firstTierSuffices: boolean) {
  const asked: SearchBody[][] = [];
  const hits = (tier: string, count: number, exact: number): Hits => ({
    entries: Array.from({ length: Math.min(count, LIMIT + 1) }, (_, i) => `${tier}${i}`),
    exact,
  });
  const run = (bodies: SearchBody[]) => {
    asked.push(bodies);
    return Promise.resolve(
      bodies.map((body) =>
        'should' in (body['query'] as { bool: object }).bool
          ? hits('first', first, Math.min(first, 1))
          : hits('second', second, 0),
      ),
    );
  };
  return { asked, results: await searchTierByTier(run, 1, { q: 'lib', limit: LIMIT }, firstTierSuffices) };
}

describe('searchTierByTier', () => {
  const cases: [first: number, second: number, ranks: string[][], count: number, truncated: boolean][] = [
    [0, 0, [[], [], []], 0, false],
    [1, 0, [['first0'], [], []], 1, false],
    [2, 1, [['first0'], ['first1'], ['second0']], 3, false],
    [2, 2, [['first0'], ['first1'], ['second0']], 3, true],
    [0, 9, [[], [], ['second0', 'second1', 'second2']], 3, true],
    [3, 0, [['first0'], ['first1', 'first2'], []], 3, false],
    [3, 1, [['first0'], ['first1', 'first2'], []], 3, true],
    [4, 0, [['first0'], ['first1', 'first2'], []], 3, true],
    [9, 9, [['first0'], ['first1', 'first2'], []], 3, true],
  ];
  for (const [first, second, ranks, count, truncated] of cases) {
    it(`finds the same in tiers of ${first} and ${second} names, whatever the prediction`, async () => {
      for (const prediction of [false, true]) {
        const { results } = await search(first, second, prediction);
        expect(results.groups.map(({ entries }) => entries)).to.deep.equal(ranks);
        expect(results.groups.map(({ member }) => member)).to.deep.equal(['rank0', 'rank1', 'rank2']);
        expect(results).to.include({ count, truncated });
      }
    });
  }

  it('searches both tiers in one request unless the first is likely to be full', async () => {
    expect((await search(9, 9, false)).asked).to.deep.equal([[FIRST, SECOND]]);
  });

  it('searches only a first tier that is likely to be full, and the second if it was not full', async () => {
    expect((await search(9, 9, true)).asked).to.deep.equal([[FIRST]]);
    expect((await search(1, 9, true)).asked).to.deep.equal([[FIRST], [SECOND]]);
  });
});
