import { expect } from 'chai';
import fc from 'fast-check';
import { codePoints } from '../../../src/util/unicode.js';
import { kibanaFieldsOf } from '../../../src/snapshot/package-document.js';

describe('kibanaFieldsOf', () => {
  it('uses the part before the first slash of an @scope/name as the scope', () => {
    expect(kibanaFieldsOf('@scope/name').scope).to.equal('@scope');
    expect(kibanaFieldsOf('@Scope/name/of-more').scope).to.equal('@Scope');
  });

  it('returns (none) if there is no scope', () => {
    for (const name of ['name', 'scope/name', '@name', '@', '@/name', 'a@scope/name']) {
      expect(kibanaFieldsOf(name).scope, name).to.equal('(none)');
    }
  });

  it('counts code points as characters', () => {
    expect(kibanaFieldsOf('Ärger')).to.include({ initial: 'Ä', length: 5 });
    expect(kibanaFieldsOf('𝒜𝒜lpha')).to.include({ initial: '𝒜', length: 6 });
    // Any code point but surrogates. The unit `binary` of fast-check takes a second to prepare.
    const codePoint = fc.oneof(fc.nat(0xd7ff), fc.integer({ min: 0xe000, max: 0x10ffff }));
    const character = codePoint.map((code) => String.fromCodePoint(code));
    fc.assert(
      fc.property(fc.string({ unit: character, minLength: 1 }), (name) => {
        const characters = codePoints(name);
        expect(kibanaFieldsOf(name)).to.include({ initial: characters[0], length: characters.length });
      }),
    );
  });
});
