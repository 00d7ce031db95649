import { expect } from 'chai';
import type { Hits, SearchBody } from '../../../src/elasticsearch/msearch.js';
import type { Cursor } from '../../../src/search/cursor.js';
import { exactNames, searchTiers, searchTiersByWeight, wordTiers } from '../../../src/search/queries.js';
import { cursorAfter, searchTierByTier, type TieredQuery } from '../../../src/search/tiered-search.js';
import { encodeEntry, entryMembers } from '../../../src/snapshot/package-document.js';

const LIMIT = 3;
const byName = (after?: Cursor): SearchBody[] => searchTiers('lib', LIMIT + 1, after);
const byWeight = (after?: Cursor): SearchBody[] => searchTiersByWeight('lib', LIMIT + 1, after);

/**
 * Searches tiers with these numbers of names.
 * @returns the numbers of the tiers in each request, the entries by rank, and the rest of the results.
 */
async function search(
  found: readonly number[],
  options: Omit<Partial<TieredQuery>, 'q' | 'limit'> = {},
  isLikelyFull?: boolean,
) {
  const tiers = (options.byWeight === true ? byWeight : byName)(options.after);
  const asked: number[][] = [];
  const run = (bodies: SearchBody[]) => {
    const numbers = bodies.map((body) =>
      tiers.findIndex((tier) => JSON.stringify(tier) === JSON.stringify(body)),
    );
    asked.push(numbers);
    return Promise.resolve(
      numbers.map((tier): Hits => {
        const entries = Array.from({ length: found[tier] ?? 0 }, (_, i) => `${tier}${i}`);
        // In name order, the first name of the first tier is exact.
        const exact = tier > 0 ? 0 : options.byWeight === true ? entries.length : Math.min(entries.length, 1);
        return { entries, exact };
      }),
    );
  };
  const results = await searchTierByTier(run, { q: 'lib', limit: LIMIT, ...options }, isLikelyFull);
  const { groups, ...rest } = results;
  expect(groups.map(({ member }) => member)).to.deep.equal(['rank0', 'rank1', 'rank2']);
  return { asked, ranks: groups.map(({ entries }) => entries), ...rest };
}

describe('searchTierByTier', () => {
  const cases: [found: number[], ranks: string[][], truncated: boolean][] = [
    [[0, 0], [[], [], []], false],
    [[2, 1], [['00'], ['01'], ['10']], false],
    [[2, 2], [['00'], ['01'], ['10']], true],
    [[0, 4], [[], [], ['10', '11', '12']], true],
    [[3, 0], [['00'], ['01', '02'], []], false],
    [[3, 1], [['00'], ['01', '02'], []], true],
    [[4, 0], [['00'], ['01', '02'], []], true],
  ];
  for (const [found, ranks, truncated] of cases) {
    it(`finds the same in tiers of ${found.join(' and ')} names, whatever is likely`, async () => {
      for (const isLikelyFull of [false, true]) {
        const results = await search(found, {}, isLikelyFull);
        expect(results).to.deep.include({ ranks, truncated, count: ranks.flat().length });
      }
    });
  }

  it('requests the last tier only if the page has room, if the others are likely to fill it', async () => {
    expect((await search([4, 4])).asked).to.deep.equal([[0, 1]]);
    expect((await search([4, 4], {}, true)).asked).to.deep.equal([[0]]);
    expect((await search([1, 4], {}, true)).asked).to.deep.equal([[0], [1]]);
    expect((await search([1, 1, 4], { byWeight: true })).asked).to.deep.equal([[0, 1, 2]]);
    expect((await search([1, 1, 4], { byWeight: true }, true)).asked).to.deep.equal([[0, 1], [2]]);
    const full = await search([2, 4, 4], { byWeight: true }, true);
    expect(full).to.deep.include({ asked: [[0, 1]], ranks: [['00', '01'], ['10'], []], truncated: true });
  });

  it('begins a later page with the tier of its cursor', async () => {
    const after = (tier: Cursor['tier'], weight?: number) => ({ tier, name: 'lib', weight }) as Cursor;
    const [startsWith, elsewhere] = [after('startsWith'), after('containsElsewhere')];
    expect((await search([4, 4], { after: startsWith }, true)).asked).to.deep.equal([[0]]);
    expect((await search([1, 4], { after: startsWith })).asked).to.deep.equal([[0, 1]]);
    expect(await search([4, 2], { after: elsewhere }, true)).to.deep.equal({
      asked: [[1]],
      ranks: [[], [], ['10', '11']],
      count: 2,
      truncated: false,
    });
    for (const [tier, asked] of [
      ['equals', [0, 1, 2]],
      ['startsWith', [1, 2]],
      ['containsElsewhere', [2]],
    ] as const)
      expect((await search([1, 1, 1], { byWeight: true, after: after(tier, 1) })).asked).to.deep.equal([
        asked,
      ]);
  });
});

describe('searchTierByTier with match', () => {
  const afterName: Cursor = { tier: 'startsWith', name: 'libx' };
  const exact: Cursor = { tier: 'equals', name: 'lib', weight: 5 };
  const starting: Cursor = { tier: 'startsWith', name: 'libx', weight: 5 };
  const cases: [Omit<TieredQuery, 'q' | 'limit'>, SearchBody[]][] = [
    [{ match: 'prefix' }, byName().slice(0, 1)],
    [{ match: 'prefix', after: afterName }, byName(afterName).slice(0, 1)],
    [{ match: 'exact', after: afterName }, [exactNames('lib', LIMIT + 1, afterName)]],
    [{ match: 'prefix', byWeight: true }, byWeight().slice(0, 2)],
    [{ match: 'prefix', byWeight: true, after: starting }, byWeight(starting).slice(1, 2)],
    [{ match: 'exact', byWeight: true, after: exact }, byWeight(exact).slice(0, 1)],
    [{ match: 'words' }, wordTiers(['lib'], LIMIT + 1)],
    [{ match: 'words', after: afterName }, wordTiers(['lib'], LIMIT + 1, afterName).slice(1)],
  ];

  it('requests only the tiers of names that match, even if they do not fill the page', async () => {
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
  it('names the last entry and the tier it belongs to', () => {
    const cases: [names: [string[], string[], string[]], cursor: Cursor, match?: 'words'][] = [
      [[['Lib', 'lib'], [], []], { tier: 'startsWith', name: 'lib' }],
      [[['Lib', 'lib'], [], []], { tier: 'equals', name: 'lib' }, 'words'],
      [[['lib'], ['liba', 'libb'], []], { tier: 'startsWith', name: 'libb' }],
      [[['lib'], ['liba'], ['a-lib', 'b-lib']], { tier: 'containsElsewhere', name: 'b-lib' }],
    ];
    for (const [names, cursor, match = 'contains'] of cases) {
      const groups = names.map((list, rank) => ({
        member: (['rank0', 'rank1', 'rank2'] as const)[rank as 0 | 1 | 2],
        entries: list.map((name) => encodeEntry(entryMembers({ no: 1, name, version: '1', url: '' }))),
      }));
      const results = { groups, count: names.flat().length, truncated: true };
      expect(cursorAfter(results, { match })).to.deep.equal(cursor);
    }
  });
});
