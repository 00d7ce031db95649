import { expect } from 'chai';
import fc from 'fast-check';
import { decodeCursor, encodeCursor, MAX_CURSOR_LENGTH, type Cursor } from '../../../src/search/cursor.js';

const TIERS = ['startsWith', 'containsElsewhere'] as const;
const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 128 });

describe('decodeCursor', () => {
  it('returns what was encoded, only for the same query', () => {
    fc.assert(
      fc.property(name, name, fc.constantFrom(...TIERS), name, (q, other, tier, last) => {
        const text = encodeCursor(q, { tier, name: last });
        expect(text).to.match(/^[\w-]+$/);
        expect(text.length).to.be.at.most(MAX_CURSOR_LENGTH);
        expect(decodeCursor(q, text)).to.deep.equal({ tier, name: last } satisfies Cursor);
        if (other !== q) expect(decodeCursor(other, text)).to.be.undefined;
      }),
    );
  });

  it('rejects any other text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.base64String()), (text) => {
        expect(decodeCursor('lib', text)).to.be.undefined;
      }),
    );
    const good = encodeCursor('lib', { tier: 'startsWith', name: 'libc' });
    for (const text of [`${good}=`, `${good} `, good.slice(0, -1), good.slice(1), `B${good.slice(1)}`]) {
      const cursor = decodeCursor('lib', text);
      if (cursor !== undefined) expect(encodeCursor('lib', cursor)).to.equal(text);
    }
    expect(decodeCursor('lib', encodeCursor('lib', { tier: 'startsWith', name: '' }))).to.be.undefined;
    // Bytes that are not UTF-8.
    const bytes = Buffer.concat([Buffer.from(good, 'base64url').subarray(0, 7), Buffer.of(0xff)]);
    expect(decodeCursor('lib', bytes.toString('base64url'))).to.be.undefined;
  });

  it('accepts the longest name of a package, and no longer one', () => {
    const longest: Cursor = { tier: 'startsWith', name: 'x'.repeat(512), weight: Number.MAX_SAFE_INTEGER };
    const text = encodeCursor('lib', longest);
    expect(text).to.have.length(MAX_CURSOR_LENGTH);
    expect(decodeCursor('lib', text, true)).to.deep.equal(longest);
    expect(decodeCursor('lib', encodeCursor('lib', { ...longest, name: 'x'.repeat(513) }), true)).to.be
      .undefined;
  });
});
