import { expect } from 'chai';
import type { NameFilter } from '../../../src/search/name-filter.js';
import {
  browsePage,
  changesInNameOrder,
  exactNames,
  newestAdditions,
  packagesByOrdinal,
  packagesNamed,
  searchTiers,
  searchTiersByWeight,
  similarNames,
  wordTiers,
} from '../../../src/search/queries.js';

/** The upper bound has 512 bytes, like the longest names: this character has four. */
const startingWith = (q: string) => ({
  range: { 'name.lowercase': { gte: q, lt: q + '\u{10FFFF}'.repeat(128) } },
});
const equalling = (q: string) => ({ range: { 'name.lowercase': { gte: q, lte: q, _name: 'exact' } } });
const containing = { match: { 'name.trigrams': 'lib' } };
const marking = { term: { 'name.lowercase': { value: 'lib', _name: 'exact' } } };

/** What every search of several hits asks for. */
const HITS = {
  _source: false,
  stored_fields: '_none_',
  docvalue_fields: ['entry'],
  track_total_hits: false,
  timeout: '2s',
};
const BY_NAME = { ...HITS, size: 9, sort: ['_doc'] };
const BY_WEIGHT = { ...HITS, size: 9, sort: [{ weight: 'desc' }, '_doc'] };

/** Names that equal this one in lower case, in a range. */
const equalAnd = (name: string, range: object) => ({
  bool: { filter: [{ range: { 'name.lowercase': { gte: name, lte: name } } }, { range: { name: range } }] },
});
/** The clauses for names after this one. */
const afterName = (name: string) => ({
  filter: [{ range: { 'name.lowercase': { gte: name } } }],
  must_not: [equalAnd(name, { lte: name })],
});

describe('searchTiers', () => {
  const [startsWith, elsewhere] = [
    { ...BY_NAME, query: { bool: { filter: [startingWith('lib')], should: marking } } },
    { ...BY_NAME, query: { bool: { filter: [containing], must_not: [startingWith('lib')] } } },
  ];

  it('queries names that start with q, then names that contain it elsewhere', () => {
    expect(searchTiers('lib', 9)).to.deep.equal([startsWith, elsewhere]);
  });

  it('continues after the name of a cursor only in its tier', () => {
    const { filter, must_not } = afterName('LibX');
    const after = { filter: [startingWith('lib'), ...filter], must_not, should: marking };
    expect(searchTiers('lib', 9, { tier: 'startsWith', name: 'LibX' })).to.deep.equal([
      { ...startsWith, query: { bool: after } },
      elsewhere,
    ]);
    const later = { filter: [containing, ...filter], must_not: [startingWith('lib'), ...must_not] };
    expect(searchTiers('lib', 9, { tier: 'containsElsewhere', name: 'LibX' })).to.deep.equal([
      startsWith,
      { ...elsewhere, query: { bool: later } },
    ]);
  });

  it('finds two or three code points by one n-gram, more by a phrase', () => {
    for (const [q, filter] of [
      ['🚀🚀', { match: { 'name.bigrams': '🚀🚀' } }],
      ['a🚀b', { match: { 'name.trigrams': 'a🚀b' } }],
      ['LiB*', { match_phrase: { 'name.trigrams': 'LiB*' } }],
    ] as const) {
      const bool = { filter: [filter], must_not: [startingWith(q)] };
      expect(searchTiers(q, 9)[1].query).to.deep.equal({ bool });
    }
  });
});

describe('searchTiersByWeight', () => {
  const equals = { ...BY_WEIGHT, query: { bool: { filter: [equalling('lib')] } } };
  const elsewhere = {
    ...BY_WEIGHT,
    query: { bool: { filter: [containing], must_not: [startingWith('lib')] } },
  };

  it('queries names that equal q, start with it, then contain it elsewhere', () => {
    const bool = { filter: [startingWith('lib')], must_not: [equalling('lib')] };
    expect(searchTiersByWeight('lib', 9)).to.deep.equal([
      equals,
      { ...BY_WEIGHT, query: { bool } },
      elsewhere,
    ]);
  });

  it('continues after the entry of a cursor only in its tier', () => {
    const upTo = {
      filter: [{ term: { weight: 7 } }, { range: { 'name.lowercase': { lte: 'libX' } } }],
      must_not: [equalAnd('libX', { gt: 'libX' })],
    };
    const bool = {
      filter: [startingWith('lib'), { range: { weight: { lte: 7 } } }],
      must_not: [equalling('lib'), { bool: upTo }],
    };
    const after = { tier: 'startsWith', name: 'libX', weight: 7 } as const;
    expect(searchTiersByWeight('lib', 9, after)).to.deep.equal([
      equals,
      { ...BY_WEIGHT, query: { bool } },
      elsewhere,
    ]);
  });
});

describe('wordTiers', () => {
  const equals = { term: { 'name.fold': { value: 'libb-c', _name: 'exact' } } };
  const other = { match: { 'name.trigrams': 'b-c' } };
  const tiers = [
    { filter: [equals, containing, other] },
    { filter: [startingWith('lib'), other], must_not: [equals] },
    { filter: [containing, other], must_not: [startingWith('lib'), equals] },
  ] as const;

  it('queries names of the fold of all words, names that start with the first word, then the rest', () => {
    for (const [byWeight, order] of [
      [false, BY_NAME],
      [true, BY_WEIGHT],
    ] as const) {
      const expected = tiers.map((bool) => ({ ...order, query: { bool } }));
      expect(wordTiers(['lib', 'b-c'], 9, undefined, byWeight)).to.deep.equal(expected);
    }
  });

  it('continues after the name of a cursor only in its tier', () => {
    const { filter, must_not } = afterName('Lib-B-C');
    const first = { filter: [...tiers[0].filter, ...filter], must_not };
    const expected = [first, ...tiers.slice(1)].map((bool) => ({ ...BY_NAME, query: { bool } }));
    expect(wordTiers(['lib', 'b-c'], 9, { tier: 'equals', name: 'Lib-B-C' })).to.deep.equal(expected);
  });
});

describe('exactNames', () => {
  it('queries names that equal q, from the first one or after a cursor', () => {
    const { filter, must_not } = afterName('LIB');
    expect(exactNames('lib', 9)).to.deep.equal({
      ...BY_NAME,
      query: { bool: { filter: [equalling('lib')] } },
    });
    expect(exactNames('lib', 9, { tier: 'startsWith', name: 'LIB' })).to.deep.equal({
      ...BY_NAME,
      query: { bool: { filter: [equalling('lib'), ...filter], must_not } },
    });
  });
});

describe('packagesNamed', () => {
  it('finds names by their folds and compares them by the rule', () => {
    for (const [rule, field] of [
      ['exact', 'name'],
      ['pypi', 'name.lowercase'],
    ] as const) {
      const filter = [{ terms: { 'name.fold': ['A-b', 'c'] } }, { terms: { [field]: ['A-b', 'c'] } }];
      expect(packagesNamed(['A-b', 'c'], rule)).to.deep.equal({
        ...HITS,
        size: 2,
        query: { bool: { filter } },
      });
    }
  });
});

describe('similarNames', () => {
  const queriesFor = (value: string) => {
    const fuzzy = (fuzziness: number) => ({
      fuzzy: { 'name.fold': { value, fuzziness, transpositions: true, rewrite: 'constant_score' } },
    });
    const exact = { term: { 'name.fold': value } };
    const itself = { term: { name: value } };
    return [
      { bool: { filter: exact, must_not: [itself] } },
      { bool: { filter: fuzzy(1), must_not: [itself, exact] } },
      { bool: { filter: fuzzy(2), must_not: [itself, fuzzy(1)] } },
    ];
  };
  const distance = (name: string) => similarNames(name, 9).length - 1;

  it('queries each distance separately without the name itself', () => {
    const name = 'a-Bcdefg';
    const found = similarNames(name, 9);
    expect(found).to.deep.equal(queriesFor(name).map((query) => ({ ...BY_NAME, query })));
    expect(similarNames('a-B', 9, true)).to.deep.equal([{ ...BY_WEIGHT, query: queriesFor('a-B')[0] }]);
  });

  it('allows a distance that grows with the length in code points', () => {
    const distances = Array.from({ length: 8 }, (_, length) => distance('🚀'.repeat(length)));
    expect(distances).to.deep.equal([0, 0, 0, 1, 1, 1, 2, 2]);
  });

  it('does not count separators', () => {
    const names = ['a-_. b', 'a-_. bc', '--abcde--', '--abcdef', '-.-', 'a\u00A0b'];
    expect(names.map(distance)).to.deep.equal([0, 1, 1, 2, 0, 1]);
  });
});

describe('browsePage', () => {
  it('queries a range of ordinals, in order', () => {
    const query = { range: { ordinal: { gte: 400, lt: 600 } } };
    expect(browsePage(400, 200)).to.deep.equal({ ...HITS, size: 200, query, sort: ['ordinal'] });
  });
});

describe('packagesByOrdinal', () => {
  it('queries any ordinals', () => {
    const query = { terms: { ordinal: [3, 1, 2] } };
    expect(packagesByOrdinal([3, 1, 2])).to.deep.equal({ ...HITS, size: 3, query });
  });
});

describe('changesInNameOrder', () => {
  it('reads records from the first one or after a name', () => {
    const first = { ...HITS, size: 7, query: { bool: { filter: [] } }, sort: ['name.lowercase', 'name'] };
    expect(changesInNameOrder(7, undefined)).to.deep.equal(first);
    expect(changesInNameOrder(7, 'LibX')).to.deep.equal({ ...first, query: { bool: afterName('LibX') } });
  });

  it('selects names by a filter', () => {
    const fuzzy = { value: 'lib-c', fuzziness: 1, transpositions: true, rewrite: 'constant_score' };
    const filters: [only: NameFilter, filter: object[], must_not?: object[]][] = [
      [{ q: 'lib', match: 'prefix' }, [startingWith('lib')]],
      [{ q: 'lib', match: 'contains' }, [containing]],
      [{ q: 'lib', match: 'exact' }, [equalling('lib')]],
      [{ q: 'lib  a🚀b', match: 'words' }, [containing, { match: { 'name.trigrams': 'a🚀b' } }]],
      [
        { like: 'lib-c' },
        [{ range: { length: { gte: 3 } } }, { fuzzy: { 'name.fold': fuzzy } }],
        [{ term: { name: 'lib-c' } }],
      ],
    ];
    for (const [only, filter, must_not] of filters) {
      const bool = { filter, ...(must_not && { must_not }) };
      expect(changesInNameOrder(7, undefined, only)).to.deep.include({ query: { bool } });
    }
  });
});

describe('newestAdditions', () => {
  it('reads records of added packages, the highest number first', () => {
    const bool = { filter: [{ term: { change: 'added' } }, containing] };
    expect(newestAdditions(9, { q: 'lib', match: 'contains' })).to.deep.equal({
      ...HITS,
      size: 9,
      query: { bool },
      sort: [{ no: 'desc' }],
    });
  });
});
