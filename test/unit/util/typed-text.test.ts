import { expect } from 'chai';
import type { NameRule } from '../../../src/util/name-rule.js';
import { typedQuery, type TypedQuery } from '../../../src/util/typed-text.js';

describe('typedQuery', () => {
  const words = (q: string): TypedQuery => ({ q, match: 'words' });
  const cases: [text: string, rule: NameRule, query: TypedQuery | undefined][] = [
    [' redis ', 'exact', { q: 'redis' }],
    ['redis\u00A0\t client', 'exact', words('redis client')],
    ['redis c', 'exact', { q: 'redis' }],
    ['a redis 🚀 cl b', 'exact', words('redis cl')],
    ['a b', 'exact', undefined],
    ['', 'exact', undefined],
    ['redis ._ --', 'exact', words('redis ._ --')],
    ['redis ._ --', 'pypi', { q: 'redis' }],
    ['redis _- __', 'crates', words('redis _- __')],
    ['._', 'pypi', undefined],
    ['aa bb cc dd e ee ff gg hh ii jj', 'exact', words('aa bb cc dd ee ff gg hh')],
  ];

  it('leaves out words that are too short, then words beyond the eighth', () => {
    for (const [text, rule, query] of cases) expect(typedQuery(text, rule), text).to.deep.equal(query);
  });
});
