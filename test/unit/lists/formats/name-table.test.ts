import { hash } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import xxhash from 'xxhash-wasm';
import { NameTable } from '../../../../src/lists/formats/name-table.js';

const text = fc.string({ unit: 'binary' }).filter((one) => one.isWellFormed());
const addressesIn = (table: NameTable) => [...table.map((address) => address)].flat();

describe('NameTable', () => {
  it('has a number for each name, like a map', async () => {
    const name = fc.string({ unit: 'binary', maxLength: 3 }).filter((text) => text.isWellFormed());
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(name, fc.maxSafeNat())), fc.array(name), async (rows, others) => {
        const table = await NameTable.create();
        const expected = new Map<string, number>();
        for (const [key, number] of rows) {
          table.add(key, number);
          if (!expected.has(key)) expected.set(key, number);
        }
        expect(table.size).to.equal(expected.size);
        const find = (key: string) => (table.find(key) === 0 ? undefined : table.numberAt(table.find(key)));
        for (const key of others) expect(find(key)).to.equal(expected.get(key));
        for (const [key, number] of expected) {
          expect(find(key)).to.equal(number);
          table.setNumber(table.find(key), number + 0.5);
          expect(find(key)).to.equal(number + 0.5);
        }
      }),
    );
  });

  it('tells names apart whose hashes are equal', async () => {
    const hashes = await xxhash();
    const names = Array.from({ length: 200_000 }, (_, i) => hash('md5', String(i)));
    const byHash = new Map<number, string[]>();
    for (const name of names) {
      const hashed = hashes.h32(name);
      byHash.set(hashed, [...(byHash.get(hashed) ?? []), name]);
    }
    const alike = [...byHash.values()].filter(({ length }) => length > 1);
    expect(alike.length).to.be.greaterThan(0);
    const table = await NameTable.create();
    const numberOf = (name: string) => (table.find(name) === 0 ? 0 : table.numberAt(table.find(name)));
    const weightOf = new Map(names.map((name, i) => [name, i]));
    const [missing = ''] = alike[0] ?? [];
    for (const [name, weight] of weightOf) if (name !== missing) table.add(name, weight);
    for (const name of alike.flat())
      expect(numberOf(name)).to.equal(name === missing ? 0 : weightOf.get(name));
    const [long, longer] = ['é'.repeat(256), `${'é'.repeat(255)}ee`];
    table.add(long, 2 ** 53 - 1);
    expect([numberOf(long), numberOf(longer)]).to.deep.equal([2 ** 53 - 1, 0]);
  });

  it('keeps the values of each name in order, like a map of lists', () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.string({ maxLength: 2 }), text)), async (pairs) => {
        const table = await NameTable.create();
        const map = new Map<string, string[]>();
        for (const [name, value] of pairs) {
          table.push(table.add(name), value);
          map.set(name, [...(map.get(name) ?? []), value]);
        }
        const positions = addressesIn(table);
        expect(positions.map((i) => [table.nameAt(i), [...table.textsOf(i)].reverse()])).to.deep.equal([
          ...map,
        ]);
        expect(positions.map((i) => table.lastTextOf(i))).to.deep.equal(
          [...map.values()].map((values) => values.at(-1)),
        );
        expect([...map.keys()].map((name) => table.find(name))).to.deep.equal(positions);
        expect(table.find('missing')).to.equal(0);
      }),
    ));

  it('holds texts of any size', async () => {
    const table = await NameTable.create();
    const long = ['x'.repeat(2 ** 20 - 8), 'y'.repeat(3_000_000), 'z'.repeat(2 ** 20 - 7)];
    for (const [i, one] of [...long, 'short', ...long].entries()) table.push(table.add(one), `${i}${one}`);
    expect(table.size).to.equal(4);
    const addresses = addressesIn(table);
    for (const [i, one] of [...long, 'short'].entries()) {
      const address = addresses[i] as number;
      expect(table.nameAt(address) === one).to.equal(true);
      expect(table.lastTextOf(address) === `${i === 3 ? 3 : i + 4}${one}`).to.equal(true);
    }
  });

  it('has at most 2,000,000 names', async function () {
    this.timeout(60_000);
    const table = await NameTable.create();
    for (let i = 0; i < 2_000_000; i++) table.add(String(i));
    expect(table.add('7')).to.equal(table.find('7'));
    const message = 'the list has more than 2000000 names, which is the limit of this format';
    expect(() => table.add('more')).to.throw(message);
  });
});
