import { expect } from 'chai';
import { fold, maxDistance } from '../../../src/search/fold.js';

describe('fold', () => {
  const cases: [name: string, folded: string][] = [
    ['React-DOM', 'reactdom'],
    ['react_dom', 'reactdom'],
    ['react.dom ', 'reactdom'],
    ['--', ''],
    ['@scope/a-b', '@scope/ab'],
    ['İstanbul', 'istanbul'],
    ['ΣΊΣΥΦΟΣ', 'σίσυφοσ'],
    ['a\u00A0b', 'a\u00A0b'],
    ['\u{10400}-x', '\u{10428}x'],
  ];
  for (const [name, folded] of cases) {
    it(`of ${JSON.stringify(name)} is ${JSON.stringify(folded)}`, () => expect(fold(name)).to.equal(folded));
  }
});

describe('maxDistance', () => {
  it('grows with the length in code points', () => {
    const lengths = Array.from({ length: 8 }, (_, length) => maxDistance('🚀'.repeat(length)));
    expect(lengths).to.deep.equal([0, 0, 0, 1, 1, 1, 2, 2]);
  });
});
