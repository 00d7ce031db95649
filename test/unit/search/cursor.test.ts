import { expect } from 'chai';
import fc from 'fast-check';
import { decodeCursor, encodeCursor, MAX_CURSOR_LENGTH, type Cursor } from '../../../src/search/cursor.js';

const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 128 });
const anyTier = fc.constantFrom<Cursor['tier']>('equals', 'startsWith', 'containsElsewhere');
const tierByName = fc.constantFrom<Cursor['tier']>('startsWith', 'containsElsewhere');

describe('decodeCursor', () => {
  it('returns what was encoded, only for the same query', () => {
    fc.assert(
      fc.property(name, name, tierByName, name, (q, other, tier, last) => {
        const text = encodeCursor(q, { tier, name: last });
        expect(text).to.match(/^[\w-]+$/);
        expect(text.length).to.be.at.most(MAX_CURSOR_LENGTH);
        expect(decodeCursor(q, text)).to.deep.equal({ tier, name: last } satisfies Cursor);
        expect(decodeCursor(q, text, true), 'in the order of weights').to.equal(undefined);
        if (other !== q) expect(decodeCursor(other, text)).to.equal(undefined);
      }),
    );
  });

  it('returns what was encoded by weight, only for this order', () => {
    fc.assert(
      fc.property(name, anyTier, name, fc.maxSafeNat(), (q, tier, last, weight) => {
        const text = encodeCursor(q, { tier, name: last, weight });
        expect(text.length).to.be.at.most(MAX_CURSOR_LENGTH);
        expect(decodeCursor(q, text, true)).to.deep.equal({ tier, name: last, weight });
        expect(decodeCursor(q, text)).to.equal(undefined);
      }),
    );
  });

  it('rejects any other text', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: 'binary' }), fc.base64String()),
        fc.boolean(),
        (text, byWeight) => {
          expect(decodeCursor('lib', text, byWeight)).to.equal(undefined);
        },
      ),
    );
    const good = encodeCursor('lib', { tier: 'startsWith', name: 'libc' });
    for (const text of [`${good}=`, `${good} `, good.slice(0, -1), good.slice(1), `B${good.slice(1)}`]) {
      const cursor = decodeCursor('lib', text);
      if (cursor !== undefined) expect(encodeCursor('lib', cursor)).to.equal(text);
    }
    expect(decodeCursor('lib', encodeCursor('lib', { tier: 'startsWith', name: '' }))).to.equal(undefined);
    // Bytes that are not UTF-8.
    const bytes = Buffer.concat([Buffer.from(good, 'base64url').subarray(0, 7), Buffer.of(0xff)]);
    expect(decodeCursor('lib', bytes.toString('base64url'))).to.equal(undefined);
  });

  it('rejects numbers that are no weights', () => {
    for (const weight of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
      const text = encodeCursor('q', { tier: 'equals', name: 'q', weight });
      expect(decodeCursor('q', text, true), String(weight)).to.equal(undefined);
    }
  });

  it('accepts names up to the longest of a package', () => {
    const longest: Cursor = { tier: 'startsWith', name: 'x'.repeat(512), weight: Number.MAX_SAFE_INTEGER };
    const text = encodeCursor('lib', longest);
    expect(text).to.have.length(MAX_CURSOR_LENGTH);
    expect(decodeCursor('lib', text, true)).to.deep.equal(longest);
    const longer = encodeCursor('lib', { ...longest, name: 'x'.repeat(513) });
    expect(decodeCursor('lib', longer, true)).to.equal(undefined);
  });
});
