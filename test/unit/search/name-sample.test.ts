import { expect } from 'chai';
import fc from 'fast-check';
import { NameSample } from '../../../src/search/name-sample.js';

describe('NameSample', () => {
  it('counts exactly if it has all names', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '-', '\u{FF41}', '🚀'), maxLength: 5 });
    fc.assert(
      fc.property(fc.array(text, { maxLength: 40 }), text, (names, q) => {
        const expected = names.filter((name) => name.startsWith(q)).length;
        expect(new NameSample(names, names.length).countStartingWith(q)).to.equal(expected);
      }),
    );
  });

  it('lets each name stand for as many as it was drawn from', () => {
    const sample = new NameSample(['lib-a', 'zlib', 'lib-b', 'a'], 1000);
    expect(sample.countStartingWith('lib')).to.equal(500);
    expect(sample.countStartingWith('zlib-')).to.equal(0);
  });

  it('ignores the case of the query', () => {
    expect(new NameSample(['lib'], 1).countStartingWith('Li')).to.equal(1);
  });

  it('is empty for an empty generation', () => {
    expect(new NameSample([], 0).countStartingWith('lib')).to.equal(0);
  });
});
