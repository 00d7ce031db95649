import { expect } from 'chai';
import {
  browsePage,
  changesInNameOrder,
  exactNames,
  newestAdditions,
  packagesByOrdinal,
  packagesNamed,
  searchTiers,
  similarNames,
} from '../../../src/search/queries.js';
import type { NameFilter } from '../../../src/search/name-filter.js';

/** The upper bound has 512 bytes, like the longest names: this character has four. */
const startingWith = (q: string) => ({
  range: { 'name.lowercase': { gte: q, lt: q + '\u{10FFFF}'.repeat(128) } },
});

/** What every search of several hits asks for. */
const HITS = {
  _source: false,
  stored_fields: '_none_',
  docvalue_fields: ['entry'],
  track_total_hits: false,
  timeout: '2s',
};

/** The clauses for names after this one. */
const afterName = (name: string) => ({
  filter: [{ range: { 'name.lowercase': { gte: name } } }],
  must_not: [
    {
      bool: {
        filter: [
          { range: { 'name.lowercase': { gte: name, lte: name } } },
          { range: { name: { lte: name } } },
        ],
      },
    },
  ],
});

const equalling = (q: string) => ({ term: { 'name.lowercase': { value: q, _name: 'exact' } } });

describe('searchTiers', () => {
  it('queries names that start with q, marking exact ones, and separately names that contain it elsewhere', () => {
    const tier = { ...HITS, size: 251, sort: ['_doc'] };
    const containing = { match: { 'name.trigrams': 'lib' } };
    expect(searchTiers('lib', 251)).to.deep.equal([
      { ...tier, query: { bool: { filter: [startingWith('lib')], should: equalling('lib') } } },
      { ...tier, query: { bool: { filter: [containing], must_not: [startingWith('lib')] } } },
    ]);
  });

  const filters: [what: string, q: string, filter: object][] = [
    ['one bigram', 'li', { match: { 'name.bigrams': 'li' } }],
    ['a phrase of trigrams', 'libc', { match_phrase: { 'name.trigrams': 'libc' } }],
    ['one bigram outside the basic plane', '🚀🚀', { match: { 'name.bigrams': '🚀🚀' } }],
    ['one trigram outside the basic plane', 'a🚀b', { match: { 'name.trigrams': 'a🚀b' } }],
  ];
  for (const [what, q, filter] of filters) {
    it(`finds q elsewhere in names by ${what}`, () => {
      const [, containsElsewhere] = searchTiers(q, 10);
      const bool = { filter: [filter], must_not: [startingWith(q)] };
      expect(containsElsewhere.query).to.deep.equal({ bool });
    });
  }

  it('leaves case and special characters to the analysis of the index', () => {
    for (const q of ['LiB', '*?', 'a*b?', '"quoted"', 'a\\b', 'İİ', '{"a":1}', 'a OR b']) {
      const [startsWith, containsElsewhere] = searchTiers(q, 10);
      expect(startsWith.query).to.deep.equal({
        bool: { filter: [startingWith(q)], should: equalling(q) },
      });
      expect(containsElsewhere).to.have.deep.nested.property('query.bool.must_not', [startingWith(q)]);
    }
  });
});

describe('searchTiers after a page', () => {
  it('continues after its last name, only in the tier of that name', () => {
    const [startsWith, elsewhere] = searchTiers('lib', 5, { tier: 'startsWith', name: 'LibX' });
    expect(startsWith.query).to.deep.equal({
      bool: {
        filter: [startingWith('lib'), ...afterName('LibX').filter],
        must_not: afterName('LibX').must_not,
        should: equalling('lib'),
      },
    });
    expect(elsewhere).to.deep.equal(searchTiers('lib', 5)[1]);
    const [, second] = searchTiers('lib', 5, { tier: 'containsElsewhere', name: 'a-lib' });
    expect(second.query).to.deep.equal({
      bool: {
        filter: [{ match: { 'name.trigrams': 'lib' } }, ...afterName('a-lib').filter],
        must_not: [startingWith('lib'), ...afterName('a-lib').must_not],
      },
    });
  });
});

describe('packagesNamed', () => {
  it('finds names by their folds', () => {
    const terms = [{ terms: { 'name.fold': ['A-b', 'c'] } }, { terms: { name: ['A-b', 'c'] } }];
    expect(packagesNamed(['A-b', 'c'], 'exact')).to.deep.equal({
      ...HITS,
      size: 2,
      query: { bool: { filter: terms } },
    });
  });

  it('compares them by any other rule as searches do', () => {
    const terms = [{ terms: { 'name.fold': ['A-b'] } }, { terms: { 'name.lowercase': ['A-b'] } }];
    for (const rule of ['lowercase', 'pypi', 'crates'] as const)
      expect(packagesNamed(['A-b'], rule).query).to.deep.equal({ bool: { filter: terms } });
  });
});

describe('similarNames', () => {
  it('queries each distance separately, in name order, excluding the name itself', () => {
    const fuzzy = (fuzziness: number) => ({
      fuzzy: {
        'name.fold': { value: 'abc-DEF', fuzziness, transpositions: true, rewrite: 'constant_score' },
      },
    });
    const exact = { term: { 'name.fold': 'abc-DEF' } };
    const itself = { term: { name: 'abc-DEF' } };
    const bodies = similarNames('abc-DEF', 2, 11);
    expect(bodies.map(({ query }) => query)).to.deep.equal([
      { bool: { filter: exact, must_not: [itself] } },
      { bool: { filter: fuzzy(1), must_not: [itself, exact] } },
      { bool: { filter: fuzzy(2), must_not: [itself, fuzzy(1)] } },
    ]);
    for (const { sort, size } of bodies) expect({ sort, size }).to.deep.equal({ sort: ['_doc'], size: 11 });
    expect(similarNames('ab', 0, 11)).to.have.length(1);
  });
});

describe('browsePage', () => {
  it('queries a range of ordinals, in order', () => {
    expect(browsePage(400, 200)).to.deep.equal({
      ...HITS,
      size: 200,
      query: { range: { ordinal: { gte: 400, lt: 600 } } },
      sort: ['ordinal'],
    });
  });
});

describe('packagesByOrdinal', () => {
  it('queries any ordinals', () => {
    const query = { terms: { ordinal: [3, 1, 2] } };
    expect(packagesByOrdinal([3, 1, 2])).to.deep.equal({ ...HITS, size: 3, query });
  });
});

describe('changesInNameOrder', () => {
  it('reads records from the first one or after a name, those of one name side by side', () => {
    const sort = ['name.lowercase', 'name'];
    const first = changesInNameOrder(7, undefined);
    expect(first).to.deep.equal({ ...HITS, size: 7, query: { bool: { filter: [] } }, sort });
    expect(changesInNameOrder(7, 'LibX')).to.deep.equal({ ...first, query: { bool: afterName('LibX') } });
  });
});

describe('changesInNameOrder with a filter', () => {
  it('selects the names that a search or look-alikes have', () => {
    const clausesOf = (filter: NameFilter) =>
      (changesInNameOrder(7, undefined, filter)['query'] as { bool: { filter: object[] } }).bool;
    const [startsWith] = searchTiers('lib', 1);
    const { filter: prefix } = (startsWith['query'] as { bool: { filter: object[] } }).bool;
    expect(clausesOf({ q: 'lib', match: 'prefix' })).to.deep.equal({ filter: prefix });
    expect(clausesOf({ q: 'libc', match: 'contains' }).filter).to.deep.equal([
      { match_phrase: { 'name.trigrams': 'libc' } },
    ]);
    const { bool: exact } = exactNames('lib', 1)['query'] as { bool: object };
    expect(clausesOf({ q: 'lib', match: 'exact' })).to.deep.equal(exact);
    for (const [like, distance] of [
      ['li', 0],
      ['libc', 1],
      ['libcap', 2],
    ] as const) {
      const nearest = similarNames(like, 0, 1)[0]?.['query'] as { bool: { must_not: object } };
      const { filter, ...rest } = clausesOf({ like });
      expect(rest).to.deep.equal({ must_not: nearest.bool.must_not });
      const farthest = similarNames(like, distance, 1).at(-1)?.['query'] as { bool: { filter: object } };
      expect(filter).to.deep.equal([
        { range: { length: { gte: like.length - distance } } },
        farthest.bool.filter,
      ]);
    }
  });
});

describe('newestAdditions', () => {
  it('selects names by a filter', () => {
    const { query } = newestAdditions(100, { q: 'li', match: 'contains' }) as { query: object };
    expect(query).to.deep.equal({
      bool: {
        filter: [{ term: { change: 'added' } }, { match: { 'name.bigrams': 'li' } }],
      },
    });
  });

  it('reads records of added packages, the highest number first', () => {
    expect(newestAdditions(100)).to.deep.equal({
      ...HITS,
      size: 100,
      query: { bool: { filter: [{ term: { change: 'added' } }] } },
      sort: [{ no: 'desc' }],
    });
  });
});
