import { hash } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import xxhash from 'xxhash-wasm';
import { WeightTable } from '../../../../src/rebuild/dataset/weight-table.js';

describe('WeightTable', () => {
  it('has the largest weight of each name, like a map', async () => {
    const name = fc.string({ unit: 'binary', maxLength: 3 }).filter((text) => text.isWellFormed());
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(name, fc.maxSafeNat())), fc.array(name), async (rows, others) => {
        const table = await WeightTable.create();
        const expected = new Map<string, number>();
        for (const [key, weight] of rows) {
          table.add(key, weight);
          expected.set(key, Math.max(weight, expected.get(key) ?? 0));
        }
        expect(table.size).to.equal(expected.size);
        for (const key of others) expect(table.take(key)).to.equal(expected.get(key) ?? 0);
        for (const [key, weight] of expected) expect(table.take(key)).to.equal(weight);
        expect(table.known).to.equal(expected.size);
      }),
    );
  });

  it('counts the names that were asked for, each once, and knows which of them have a weight', async () => {
    const table = await WeightTable.create();
    for (const [name, weight] of [
      ['a', 1],
      ['b', 0],
      ['c', 2],
    ] as const)
      table.add(name, weight);
    for (const name of ['a', 'a', 'b', 'x']) table.take(name);
    expect([table.size, table.known]).to.deep.equal([3, 2]);
    const weighed = ['a', 'b', 'c', 'x'].filter((name) => table.isWeighed(name));
    expect(weighed).to.deep.equal(['a']);
  });

  it('tells names apart whose hashes are equal, and names of 512 bytes', async () => {
    const hashes = await xxhash();
    const names = Array.from({ length: 200_000 }, (_, i) => hash('md5', String(i)));
    const byHash = new Map<number, string[]>();
    for (const name of names) {
      const hashed = hashes.h32(name);
      byHash.set(hashed, [...(byHash.get(hashed) ?? []), name]);
    }
    const alike = [...byHash.values()].filter(({ length }) => length > 1);
    expect(alike.length).to.be.greaterThan(0);
    const table = await WeightTable.create();
    const weightOf = new Map(names.map((name, i) => [name, i]));
    const [missing = '', present = ''] = alike[0] ?? [];
    for (const [name, weight] of weightOf) if (name !== missing) table.add(name, weight);
    for (const name of alike.flat())
      expect(table.take(name)).to.equal(name === missing ? 0 : weightOf.get(name));
    expect(table.take(present)).to.equal(weightOf.get(present));
    const [long, longer] = ['é'.repeat(256), `${'é'.repeat(255)}ee`];
    table.add(long, 2 ** 53 - 1);
    expect([table.take(long), table.take(longer)]).to.deep.equal([2 ** 53 - 1, 0]);
  });
});
