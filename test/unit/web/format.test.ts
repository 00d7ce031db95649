import { expect } from 'chai';
import { formatCompact } from '../../../src/web/format.js';

describe('formatCompact', () => {
  it('writes three digits and a unit, separated by a space that does not break', () => {
    for (const [count, text] of [
      [0, '0'],
      [999, '999'],
      [1000, '1 K'],
      [1234, '1.23 K'],
      [12_300_000, '12.3 M'],
      [123_456_789, '123 M'],
      [999_999_999, '1 B'],
      [2 ** 53 - 1, '9010 T'],
    ] as const)
      expect(formatCompact(count)).to.equal(text.replace(' ', '\u202F'));
  });
});
