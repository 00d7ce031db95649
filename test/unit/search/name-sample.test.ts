import { expect } from 'chai';
import { NameSample, PAGE_SIZE, SAMPLE_SIZE } from '../../../src/search/name-sample.js';
import { encodeEntry, entryMembers } from '../../../src/snapshot/package-document.js';
import type { SnapshotMeta } from '../../../src/snapshot/snapshot-meta.js';
import type { NameRule } from '../../../src/util/name-rule.js';

const TOTAL = 40_000;

/** A sample, and the ordinals of each of its requests. `nameOf` has the name of each ordinal. */
function sampleOf(nameOf: (ordinal: number) => string, rule: NameRule = 'exact') {
  const sample = new NameSample();
  const requests: number[][] = [];
  const snapshot = { meta: { total: TOTAL, name_rule: rule } as SnapshotMeta };
  let fails = false;
  const grow = () =>
    sample.grow(snapshot, async ([body]) => {
      const { ordinal: ordinals } = (body?.['query'] as { terms: { ordinal: number[] } }).terms;
      requests.push(ordinals);
      await Promise.resolve();
      if (fails) throw new Error('no shard available');
      const entries = ordinals.map((ordinal) =>
        encodeEntry(entryMembers({ no: ordinal + 1, name: nameOf(ordinal), version: '1', url: '' })),
      );
      return [{ entries, exact: 0 }];
    });
  return { sample, requests, grow, fail: (value: boolean) => (fails = value) };
}

describe('NameSample', () => {
  it('reads names from all over a snapshot, a page at a time, until it is complete', async () => {
    const { sample, requests, grow } = sampleOf((ordinal) => `name-${ordinal}`);
    expect(sample.fills('name-', 1, TOTAL)).to.equal(false);
    await Promise.all([grow(), grow()]);
    expect(requests.map(({ length }) => length)).to.deep.equal([PAGE_SIZE]);
    for (let i = 0; i < (2 * SAMPLE_SIZE) / PAGE_SIZE; i++) await grow();
    expect(requests).to.have.length(SAMPLE_SIZE / PAGE_SIZE);
    const ordinals = requests.flat();
    expect(Math.min(...ordinals)).to.be.within(0, 200);
    expect(Math.max(...ordinals)).to.be.within(TOTAL - 200, TOTAL - 1);
    // Of the ordinals below 40,000, 11,111 begin with a 1.
    expect(sample.fills('name-1', 10_000, TOTAL)).to.equal(true);
    expect(sample.fills('name-1', 12_200, TOTAL)).to.equal(false);
  });

  it('estimates how many names start with a query, whatever its case', async () => {
    const { sample, grow } = sampleOf((ordinal) => ['Lib-A', 'zlib'][ordinal % 2] as string);
    await grow();
    for (const q of ['Li', 'lib-a', 'zlib']) {
      expect(sample.fills(q, TOTAL / 3, TOTAL), q).to.equal(true);
      expect(sample.fills(q, (2 * TOTAL) / 3, TOTAL), q).to.equal(false);
    }
    for (const q of ['ib', 'lib-ab', 'zz', '🚀']) expect(sample.fills(q, 0, TOTAL), q).to.equal(false);
  });

  it('compares names by the rule of the snapshot', async () => {
    const { sample, grow } = sampleOf(() => 'Zope._Interface', 'pypi');
    await grow();
    expect(sample.fills('zope-i', 500, TOTAL)).to.equal(true);
  });

  it('reads a page again that could not be read', async () => {
    const { sample, requests, grow, fail } = sampleOf(() => 'lib');
    fail(true);
    await grow();
    expect(sample.fills('lib', 1, TOTAL)).to.equal(false);
    fail(false);
    await grow();
    expect(sample.fills('lib', 1, TOTAL)).to.equal(true);
    expect(requests).to.have.length(2);
  });
});
