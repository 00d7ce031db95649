import { expect } from 'chai';
import { encodeEntry, entryMembers, writeResponseBody } from '../../../src/snapshot/package-document.js';
import { packagesNamed } from '../../support/datasets.js';

describe('writeResponseBody', () => {
  // Byte lengths of every residue modulo three, and characters that JSON escapes.
  const names = ['a', 'bb', 'ccc', 'dddd', 'é', '🚀', '"quoted"', 'back\\slash', 'new\nline', 'nul\0'];
  const packages = packagesNamed(names);
  const entries = packages.map((entry) => encodeEntry(entryMembers(entry)));

  it('can join entries, because their base64 has no padding', () => {
    for (const entry of entries) expect(entry).to.match(/^[A-Za-z0-9+/]+$/);
  });

  it('writes all groups in order, each entry with the rank of its group', () => {
    const groups = [
      { member: 'rank0' as const, entries: entries.slice(0, 1) },
      { member: 'rank1' as const, entries: [] },
      { member: 'rank2' as const, entries: entries.slice(1) },
    ];
    const answer = writeResponseBody('{"query":"🚀","results":[', groups);
    expect(JSON.parse(answer.toString())).to.deep.equal({
      query: '🚀',
      results: packages.map((entry, i) => ({ ...entry, rank: i === 0 ? 0 : 2 })),
    });
  });

  it('omits the rank of a group without a rank', () => {
    const answer = writeResponseBody('{"results":[', [{ entries }]);
    expect(JSON.parse(answer.toString())).to.deep.equal({ results: packages });
  });

  it('writes an empty array if there are no entries', () => {
    for (const groups of [[], [{ entries: [] }], [{ member: 'rank0' as const, entries: [] }]]) {
      expect(writeResponseBody('{"results":[', groups).toString()).to.equal('{"results":[]}');
    }
  });
});
