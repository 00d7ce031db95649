import { expect } from 'chai';
import { trimWhiteSpace } from '../../../src/util/unicode.js';

/** White_Space of Unicode 16 (PropList.txt): nothing was added since 4.1 or removed since 6.3. */
const WHITE_SPACE = [
  0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20, 0x85, 0xa0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
  0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000,
]; // prettier-ignore

/** Far longer than any request: a quadratic search would take minutes instead of less than a second. */
const LONG = 500_000;
const LONGEST_MS = 1000;

describe('White space', () => {
  it('is removed at both ends, not within', () => {
    const all = String.fromCodePoint(...WHITE_SPACE);
    expect(trimWhiteSpace(`${all}a${all}b${all}`)).to.equal(`a${all}b`);
    for (const text of ['', all, ' ']) expect(trimWhiteSpace(text)).to.equal('');
    for (const text of ['a', '🚀', 'a b', '\ud83d']) expect(trimWhiteSpace(text)).to.equal(text);
  });

  it('is exactly the white space of Unicode', () => {
    for (let codePoint = 0; codePoint <= 0x10ffff; codePoint++) {
      const text = `${String.fromCodePoint(codePoint)}ab`;
      const expected = WHITE_SPACE.includes(codePoint) ? 'ab' : text;
      if (trimWhiteSpace(text) !== expected) expect.fail(`U+${codePoint.toString(16)}`);
    }
  });

  it('is trimmed in time proportional to its length', () => {
    const spaces = ' '.repeat(LONG);
    for (const text of [spaces, `a${spaces}b`, `${spaces}a${spaces}b${spaces}`]) {
      const began = performance.now();
      trimWhiteSpace(text);
      expect(performance.now() - began).to.be.lessThan(LONGEST_MS);
    }
  });
});
