import { expect } from 'chai';
import { etagOf, FORMAT_VERSION } from '../../../../src/http/response/etag.js';

describe('etagOf', () => {
  it('is equal on all replicas, and differs between snapshots and requests', () => {
    expect(etagOf('g1', 'r'))
      .to.equal(etagOf('g1', 'r'))
      .and.to.match(/^W\/"[\w-]+"$/);
    expect(new Set([etagOf('g1', 'r'), etagOf('g2', 'r'), etagOf('g1', 's')]).size).to.equal(3);
  });

  it('differs between versions of the response format', () => {
    expect(etagOf('g1', 'r')).to.equal(etagOf('g1', 'r', FORMAT_VERSION));
    const versions = [FORMAT_VERSION - 1, FORMAT_VERSION, FORMAT_VERSION + 1];
    expect(new Set(versions.map((version) => etagOf('g1', 'r', version))).size).to.equal(3);
  });
});
