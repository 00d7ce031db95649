import { expect } from 'chai';
import { compareDebianVersions, compareRVersions } from '../../../../src/lists/formats/versions.js';

describe('The order of versions', () => {
  for (const [compare, ascending] of [
    // Each order is that of `dpkg --compare-versions`.
    [compareDebianVersions, '1.0~~ < 1.0~~a < 1.0~ < 1.0~rc1 < 1.0 < 1.0a < 1.0+b1 < 1.0.1'],
    [compareDebianVersions, '1.0-1~bpo12+1 < 1.0-1 < 1.0-1+b1 < 1.0-1+deb12u1 < 1.0-1.1 < 1.0-2 < 1.0-10'],
    [compareDebianVersions, '9 < 10 < 1:0.1 < 2:0 < 10:0'],
    [compareDebianVersions, '1.0-1 < 1.0-a-1 < 1.0.a < 1.1'],
    [compareDebianVersions, '1.0-1 < 1.0+1-1 < 1.0-1-1'],
    [compareDebianVersions, '2-~ < 2 < 2-0a < 2-1'],
    [compareDebianVersions, '1.0Z < 1.0a < 1.0+ < 1.0. < 1.0.1'],
    [compareDebianVersions, '1.99999999999999999998 < 1.99999999999999999999'],
    [compareDebianVersions, '0.0.26-3 < 1:0 < 1:0:1'],
    // R's `compareVersion`.
    [compareRVersions, '0.9-99 < 0.10 < 1.0 < 1.0-0 < 1.0.9 < 1.0-10 < 1.01.1 < 1.2-3 < 1.2.3.1'],
    [compareRVersions, '1.6.0 < 1.6-1 < 2.9 < 2.10-1 < 20230101 < 20230101-1'],
  ] as const) {
    it(`of ${compare.name} is ${ascending}`, () => {
      const versions = ascending.split(' < ');
      for (const [i, one] of versions.entries()) {
        for (const [j, other] of versions.entries())
          expect(Math.sign(compare(one, other)), `${one} and ${other}`).to.equal(Math.sign(i - j));
      }
    });
  }

  it('tells no versions of Debian apart that differ only in zeros', () => {
    for (const pair of ['1.0 1.0-0', '1.0 0:1.0', '1.02-3 1.2-03', '1.a 1.a0']) {
      const [a = '', b = ''] = pair.split(' ');
      expect(compareDebianVersions(a, b), pair).to.equal(0);
    }
  });
});
