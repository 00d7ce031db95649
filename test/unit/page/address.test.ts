import { expect } from 'chai';
import { addressOf, FEW, MOST, readAddress } from '../../../src/page/address.js';

describe('The address of the page', () => {
  it('is read back as what it was written for', () => {
    const queries = ['redis', '@scope/name', 'c++', 'a&b=c', '100%', 'ünï 🚀', '#1'];
    for (const query of queries) {
      for (const limit of [FEW, MOST]) {
        expect(readAddress(addressOf({ query, limit }))).to.deep.equal({ query, limit });
      }
    }
    for (const page of [1, 2, 1274]) expect(readAddress(addressOf({ page }))).to.deep.equal({ page });
  });

  it('is the shortest one, relative to the page', () => {
    expect(addressOf({ page: 1 })).to.equal('.');
    expect(addressOf({ page: 3 })).to.equal('?page=3');
    expect(addressOf({ query: 'redis', limit: FEW })).to.equal('?q=redis');
  });

  it('shows something sensible, whatever it is', () => {
    for (const search of ['', '?', '?page=0', '?page=-1', '?page=x', '?page=1e99', '?q=', '?q=%20', '?x=y']) {
      expect(readAddress(search), search).to.deep.equal({ page: 1 });
    }
    expect(readAddress('?q=%20redis%20&page=3&limit=7')).to.deep.equal({ query: 'redis', limit: FEW });
  });
});
