import { expect } from 'chai';
import { compareDebianVersions } from '../../../../src/lists/formats/versions.js';

describe('compareDebianVersions', () => {
  // Each order is that of `dpkg --compare-versions`.
  for (const ascending of [
    '1.0~~ < 1.0~~a < 1.0~ < 1.0~rc1 < 1.0 < 1.0a < 1.0+b1 < 1.0.1',
    '1.0-1~bpo12+1 < 1.0-1 < 1.0-1+b1 < 1.0-1+deb12u1 < 1.0-1.1 < 1.0-2 < 1.0-10',
    '9 < 10 < 1:0.1 < 2:0 < 10:0',
    '1.0-1 < 1.0-a-1 < 1.0.a < 1.1',
    '1.0-1 < 1.0+1-1 < 1.0-1-1',
    '2-~ < 2 < 2-0a < 2-1',
    '1.0Z < 1.0a < 1.0+ < 1.0. < 1.0.1',
    '1.99999999999999999998 < 1.99999999999999999999',
    '0.0.26-3 < 1:0 < 1:0:1',
  ]) {
    it(`orders ${ascending}`, () => {
      const versions = ascending.split(' < ');
      for (const [i, lower] of versions.entries()) {
        for (const higher of versions.slice(i + 1)) {
          expect(compareDebianVersions(lower, higher), `${lower} < ${higher}`).to.be.lessThan(0);
          expect(compareDebianVersions(higher, lower), `${higher} > ${lower}`).to.be.greaterThan(0);
        }
      }
    });
  }

  it('considers versions equal that differ only in zeros', () => {
    for (const pair of ['1.0 1.0', '1.0 1.0-0', '1.0 0:1.0', '1.02-3 1.2-03', '1.a 1.a0']) {
      const [a = '', b = ''] = pair.split(' ');
      expect(compareDebianVersions(a, b), pair).to.equal(0);
    }
  });
});
