import { expect } from 'chai';
import { encodeEntry, entryMembers } from '../../../src/snapshot/package-document.js';
import { cursorAfter, searchTierByTier, type TieredQuery } from '../../../src/search/tiered-search.js';
import type { Cursor } from '../../../src/search/cursor.js';
import type { Hits, SearchBody } from '../../../src/elasticsearch/msearch.js';
import { exactNames, searchTiers, searchTiersByWeight } from '../../../src/search/queries.js';

const LIMIT = 3;
const [FIRST, SECOND] = searchTiers('lib', LIMIT + 1);

/** Searches tiers of these numbers of names, the first name being exact, and records the searches. */
async function search(first: number, second: number, isLikelyFull?: boolean, after?: Cursor) {
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
  return {
    asked,
    results: await searchTierByTier(run, { q: 'lib', limit: LIMIT, after }, isLikelyFull),
  };
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
    it(`finds the same in tiers of ${first} and ${second} names, whatever is likely`, async () => {
      for (const isLikelyFull of [false, true]) {
        const { results } = await search(first, second, isLikelyFull);
        expect(results.groups.map(({ entries }) => entries)).to.deep.equal(ranks);
        expect(results.groups.map(({ member }) => member)).to.deep.equal(['rank0', 'rank1', 'rank2']);
        expect(results).to.include({ count, truncated });
      }
    });
  }

  it('searches both tiers in one request unless the first is likely to be full', async () => {
    expect((await search(9, 9, false)).asked).to.deep.equal([[FIRST, SECOND]]);
    expect((await search(9, 9)).asked, 'by default').to.deep.equal([[FIRST, SECOND]]);
  });

  it('searches only a first tier that is likely to be full, and the second if it was not full', async () => {
    expect((await search(9, 9, true)).asked).to.deep.equal([[FIRST]]);
    expect((await search(1, 9, true)).asked).to.deep.equal([[FIRST], [SECOND]]);
  });

  it('continues a later page in the first tier, and then in the second', async () => {
    const after: Cursor = { tier: 'startsWith', name: 'libx' };
    const [first] = searchTiers('lib', LIMIT + 1, after);
    expect((await search(9, 9, true, after)).asked).to.deep.equal([[first]]);
    for (const isLikelyFull of [false, true]) {
      const { asked, results } = await search(1, 9, isLikelyFull, after);
      expect(asked).to.deep.equal(isLikelyFull ? [[first], [SECOND]] : [[first, SECOND]]);
      expect(results.groups.map(({ entries }) => entries)).to.deep.equal([
        ['first0'],
        [],
        ['second0', 'second1'],
      ]);
    }
  });

  it('continues a later page in the second tier alone', async () => {
    const after: Cursor = { tier: 'containsElsewhere', name: 'a-lib' };
    const [, second] = searchTiers('lib', LIMIT + 1, after);
    const { asked, results } = await search(9, 2, true, after);
    expect(asked).to.deep.equal([[second]]);
    expect(results).to.deep.equal({
      groups: [
        { member: 'rank0', entries: [] },
        { member: 'rank1', entries: [] },
        { member: 'rank2', entries: ['second0', 'second1'] },
      ],
      count: 2,
      truncated: false,
    });
  });
});

describe('searchTierByTier with match', () => {
  const byName: Cursor = { tier: 'startsWith', name: 'libx' };
  const exact: Cursor = { tier: 'equals', name: 'lib', weight: 5 };
  const starting: Cursor = { tier: 'startsWith', name: 'libx', weight: 5 };
  const tiers = (after?: Cursor) => searchTiersByWeight('lib', LIMIT + 1, after);
  const cases: [Omit<TieredQuery, 'q' | 'limit'>, SearchBody[]][] = [
    [{ match: 'prefix' }, [FIRST]],
    [{ match: 'prefix', after: byName }, searchTiers('lib', LIMIT + 1, byName).slice(0, 1)],
    [{ match: 'exact' }, [exactNames('lib', LIMIT + 1)]],
    [{ match: 'exact', after: byName }, [exactNames('lib', LIMIT + 1, byName)]],
    [{ match: 'prefix', byWeight: true }, tiers().slice(0, 2)],
    [{ match: 'prefix', byWeight: true, after: exact }, tiers(exact).slice(0, 2)],
    [{ match: 'prefix', byWeight: true, after: starting }, tiers(starting).slice(1, 2)],
    [{ match: 'exact', byWeight: true }, tiers().slice(0, 1)],
    [{ match: 'exact', byWeight: true, after: exact }, tiers(exact).slice(0, 1)],
  ];

  it('requests the tiers of names that match, together and no others, even if they do not fill the page', async () => {
    for (const [query, expected] of cases) {
      const asked: SearchBody[][] = [];
      const run = (bodies: SearchBody[]) => {
        asked.push(bodies);
        return Promise.resolve(bodies.map(() => ({ entries: [], exact: 0 })));
      };
      const results = await searchTierByTier(run, { q: 'lib', limit: LIMIT, ...query });
      expect(asked, JSON.stringify(query)).to.deep.equal([expected]);
      expect(results).to.include({ count: 0, truncated: false });
    }
  });
});

describe('cursorAfter', () => {
  const encoded = (...names: string[]) =>
    names.map((name) => encodeEntry(entryMembers({ no: 1, name, version: '1', url: '' })));
  const groupsOf = (...names: [string[], string[], string[]]) => ({
    groups: names.map((list, rank) => ({
      member: (['rank0', 'rank1', 'rank2'] as const)[rank as 0 | 1 | 2],
      entries: encoded(...list),
    })),
    count: names.flat().length,
    truncated: true,
  });

  it('names the last entry and the tier it belongs to', () => {
    const cases: [names: [string[], string[], string[]], cursor: Cursor][] = [
      [[['lib'], [], []], { tier: 'startsWith', name: 'lib' }],
      [[['Lib', 'lib'], [], []], { tier: 'startsWith', name: 'lib' }],
      [[['lib'], ['liba', 'libb'], []], { tier: 'startsWith', name: 'libb' }],
      [[['lib'], ['liba'], ['a-lib', 'b-lib']], { tier: 'containsElsewhere', name: 'b-lib' }],
    ];
    for (const [names, cursor] of cases) expect(cursorAfter(groupsOf(...names))).to.deep.equal(cursor);
  });
});
