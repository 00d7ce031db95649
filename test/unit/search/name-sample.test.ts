import type { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Snapshot } from '../../../src/snapshot/snapshot.js';
import { NameSample, readNameSample } from '../../../src/search/tier-predictor.js';

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

  it('scales the count to the total', () => {
    const sample = new NameSample(['lib-a', 'zlib', 'lib-b', 'a'], 1000);
    expect(sample.countStartingWith('lib')).to.equal(500);
    expect(sample.countStartingWith('zlib-')).to.equal(0);
  });

  it('ignores the case of the query', () => {
    expect(new NameSample(['lib'], 1).countStartingWith('Li')).to.equal(1);
  });

  it('is empty for an empty snapshot', () => {
    expect(new NameSample([], 0).countStartingWith('lib')).to.equal(0);
  });
});

describe('readNameSample', () => {
  it('reads names from all over a large snapshot, a page at a time', async () => {
    const total = 40_000;
    const read: number[] = [];
    let largest = 0;
    const search = ({ query }: { query: { terms: { ordinal: number[] } } }) => {
      const { ordinal: ordinals } = query.terms;
      read.push(...ordinals);
      largest = Math.max(largest, ordinals.length);
      const hits = ordinals.map((ordinal) => ({ fields: { 'name.lowercase': [`name-${ordinal}`] } }));
      return Promise.resolve({ hits: { hits } });
    };
    const client = { search } as unknown as Client;
    const sample = await readNameSample(client, { index: 'a-1', meta: { total } } as Snapshot);
    expect(new Set(read).size).to.equal(16_384);
    expect(largest).to.equal(512);
    expect(Math.min(...read)).to.equal(0);
    expect(Math.max(...read)).to.be.within(total - 3, total - 1);
    // Of the ordinals below 40,000, 11,111 begin with a 1.
    expect(sample.countStartingWith('name-1')).to.be.within(10_500, 11_700);
  });
});
