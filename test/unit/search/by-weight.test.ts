import { expect } from 'chai';
import fc from 'fast-check';
import type { SearchBody } from '../../../src/elasticsearch/msearch.js';
import { decodeCursor, encodeCursor, MAX_CURSOR_LENGTH, type Cursor } from '../../../src/search/cursor.js';
import { searchTiers, searchTiersByWeight, similarNames } from '../../../src/search/queries.js';
import { searchTierByTier } from '../../../src/search/tiered-search.js';

const equalling = { range: { 'name.lowercase': { gte: 'lib', lte: 'lib', _name: 'exact' } } };
const startingWith = { range: { 'name.lowercase': { gte: 'lib', lt: 'lib' + '\u{10FFFF}'.repeat(128) } } };
const containing = { match: { 'name.trigrams': 'lib' } };

describe('searchTiersByWeight', () => {
  it('queries names that equal q, start with it, and contain it elsewhere, by weight, then in name order', () => {
    const [first] = searchTiers('lib', 251);
    const tier = { ...first, sort: [{ weight: 'desc' }, '_doc'] };
    expect(searchTiersByWeight('lib', 251)).to.deep.equal([
      { ...tier, query: { bool: { filter: [equalling] } } },
      { ...tier, query: { bool: { filter: [startingWith], must_not: [equalling] } } },
      { ...tier, query: { bool: { filter: [containing], must_not: [startingWith] } } },
    ]);
  });

  it('continues after an entry, only in its tier', () => {
    const [equals, startsWith, elsewhere] = searchTiersByWeight('lib', 5, {
      tier: 'startsWith',
      name: 'libX',
      weight: 7,
    });
    const sameName = { range: { 'name.lowercase': { gte: 'libX', lte: 'libX' } } };
    const upTo = {
      filter: [{ term: { weight: 7 } }, { range: { 'name.lowercase': { lte: 'libX' } } }],
      must_not: [{ bool: { filter: [sameName, { range: { name: { gt: 'libX' } } }] } }],
    };
    expect(startsWith['query']).to.deep.equal({
      bool: {
        filter: [startingWith, { range: { weight: { lte: 7 } } }],
        must_not: [equalling, { bool: upTo }],
      },
    });
    expect([equals, elsewhere]).to.deep.equal([0, 2].map((i) => searchTiersByWeight('lib', 5)[i]));
  });
});

describe('similarNames by weight', () => {
  it('sorts each distance by weight, then in name order', () => {
    for (const { sort } of similarNames('redis', 1, 11, true))
      expect(sort).to.deep.equal([{ weight: 'desc' }, '_doc']);
  });
});

describe('searchTierByTier by weight', () => {
  /** The numbers of searches of each request, if the tiers have these numbers of names. */
  async function requests(found: number[], options: { after?: Cursor; isLikelyFull?: boolean } = {}) {
    const tiers = searchTiersByWeight('lib', 4, options.after);
    const asked: number[][] = [];
    const run = (bodies: SearchBody[]) => {
      const numbers = bodies.map((body) =>
        tiers.findIndex((tier) => JSON.stringify(tier) === JSON.stringify(body)),
      );
      asked.push(numbers);
      return Promise.resolve(
        numbers.map((tier) => {
          const entries = Array.from({ length: found[tier] ?? 0 }, (_, i) => `${tier}${i}`);
          return { entries, exact: tier === 0 ? entries.length : 0 };
        }),
      );
    };
    const query = { q: 'lib', limit: 3, after: options.after, byWeight: true };
    const { groups, ...rest } = await searchTierByTier(run, query, options.isLikelyFull);
    return { asked, ranks: groups.map(({ entries }) => entries), ...rest };
  }

  it('requests all tiers together, or the last one only if the others do not fill the page', async () => {
    const all = { ranks: [['00'], ['10'], ['20']], count: 3, truncated: true };
    expect(await requests([1, 1, 4])).to.deep.equal({ asked: [[0, 1, 2]], ...all });
    expect(await requests([1, 1, 4], { isLikelyFull: true })).to.deep.equal({ asked: [[0, 1], [2]], ...all });
    const full = { ranks: [['00', '01'], ['10'], []], count: 3, truncated: true };
    expect(await requests([2, 4, 4], { isLikelyFull: true })).to.deep.equal({ asked: [[0, 1]], ...full });
  });

  it('begins a later page with the tier of its cursor', async () => {
    const after = (tier: Cursor['tier']) => ({ after: { tier, name: 'lib', weight: 1 } });
    expect((await requests([1, 4, 4], after('equals'))).asked).to.deep.equal([[0, 1, 2]]);
    expect((await requests([1, 1, 4], after('startsWith'))).asked).to.deep.equal([[1, 2]]);
    expect((await requests([1, 1, 4], after('containsElsewhere'))).asked).to.deep.equal([[2]]);
  });
});

describe('decodeCursor by weight', () => {
  const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 128 });
  const tiers = fc.constantFrom<Cursor['tier']>('equals', 'startsWith', 'containsElsewhere');

  it('decodes to the encoded value only for an equal query and order', () => {
    fc.assert(
      fc.property(name, tiers, name, fc.maxSafeNat(), (q, tier, last, weight) => {
        const text = encodeCursor(q, { tier, name: last, weight });
        expect(text.length).to.be.at.most(MAX_CURSOR_LENGTH);
        expect(decodeCursor(q, text, true)).to.deep.equal({ tier, name: last, weight });
        expect(decodeCursor(q, text)).to.equal(undefined);
        expect(decodeCursor(q, encodeCursor(q, { tier, name: last }), true)).to.equal(undefined);
      }),
    );
  });

  it('rejects any other text, and numbers that are no weights', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.base64String()), (text) => {
        expect(decodeCursor('lib', text, true)).to.equal(undefined);
      }),
    );
    for (const weight of [-1, 0.5, NaN, Infinity, 2 ** 53])
      expect(decodeCursor('q', encodeCursor('q', { tier: 'equals', name: 'q', weight }), true)).to.equal(
        undefined,
      );
  });
});
