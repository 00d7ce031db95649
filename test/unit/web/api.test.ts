import { expect } from 'chai';
import { changeCounts } from '../../../src/web/api.js';

describe('changeCounts', () => {
  const of = (value: string) => changeCounts(new Headers({ 'X-Snapshot-Changes': value }));

  it('reads the counts by name, in any order', () => {
    expect(of('added=123, removed=45, updated=6')).to.deep.equal({ added: 123, removed: 45, updated: 6 });
    expect(of('updated=6,removed=0')).to.deep.equal({ added: 0, removed: 0, updated: 6 });
  });

  it('returns undefined without the header', () => {
    expect(changeCounts(new Headers())).to.equal(undefined);
  });
});
