import { expect } from 'chai';
import { maxDistance } from '../../../src/search/similarity.js';

describe('maxDistance', () => {
  it('grows with the length in code points', () => {
    const distances = Array.from({ length: 8 }, (_, length) => maxDistance('🚀'.repeat(length)));
    expect(distances).to.deep.equal([0, 0, 0, 1, 1, 1, 2, 2]);
  });

  it('does not count separators', () => {
    expect(['a-_. b', 'a-_. bc', '--abcde--', '--abcdef', '-.-', 'a\u00A0b'].map(maxDistance)).to.deep.equal([
      0, 1, 1, 2, 0, 1,
    ]);
  });
});
