import { expect } from 'chai';
import fc from 'fast-check';
import { cleanProse } from '../../../../src/lists/formats/package-check.js';

const WORDS = 'word '.repeat(100);

describe('cleanProse', () => {
  const texts: [what: string, value: unknown, cleaned: string][] = [
    ['a text of one line', 'Finds "things", fast', 'Finds "things", fast'],
    ['white space and control characters', '\t a\r\n\u2028b\u0085\0c \x1b[1m\u00a0', 'a b c [1m'],
    ['half of a surrogate pair', 'a\ud800b', 'a\ufffdb'],
    ['nothing but white space', ' \n\x7f', ''],
    ['values that are not strings', { text: 'a' }, ''],
    ['300 code points', '🚀'.repeat(300), '🚀'.repeat(300)],
    ['a longer text, cut at a space', WORDS, `${'word '.repeat(60).trimEnd()}…`],
    ['a text with a space after 300 code points', `a ${'b'.repeat(298)} c`, 'a…'],
    ['a longer text without a space', '🚀'.repeat(301), `${'🚀'.repeat(299)}…`],
    ['a long run of white space', `a${' '.repeat(1000)}b`, 'a b'],
  ];
  for (const [what, value, cleaned] of texts)
    it(`cleans ${what}`, () => expect(cleanProse(value)).to.equal(cleaned));

  it('returns one line of up to 300 code points, which it does not change again', () => {
    const unit = fc.oneof(
      fc.constantFrom(' ', '\n', '\0', '…', '🚀', '\ud83d'),
      fc.string({ unit: 'binary', maxLength: 1 }),
    );
    const long = fc.array(unit, { maxLength: 700, size: 'max' }).map((parts) => parts.join(''));
    const property = fc.property(long, (text) => {
      const cleaned = cleanProse(text);
      expect(Array.from(cleaned)).to.have.length.at.most(300);
      expect(cleaned).not.to.match(/\p{Cc}|[^\P{White_Space} ]|^ | $| {2}/u);
      expect(cleaned.isWellFormed()).to.equal(true);
      expect(cleanProse(cleaned)).to.equal(cleaned);
    });
    fc.assert(property, { numRuns: 5000 });
  });
});
