import { expect } from 'chai';
import fc from 'fast-check';
import { CopyReader } from '../../../../../src/rebuild/dataset/documents/copy-csv.js';
import {
  readJson,
  type Containers,
  type JsonMember,
} from '../../../../../src/rebuild/dataset/documents/json.js';
import { readLines } from '../../../../../src/rebuild/dataset/documents/lines.js';
import { NameTable } from '../../../../../src/rebuild/dataset/documents/name-table.js';

const text = fc.string({ unit: 'binary' }).filter((one) => one.isWellFormed());
const size = fc.integer({ min: 1, max: 20 });

/** The bytes of a text in chunks, which may split a character. */
async function* chunks(whole: string, bytes: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.from(whole);
  for (let i = 0; i < buffer.length; i += bytes) yield await Promise.resolve(buffer.subarray(i, i + bytes));
}

async function all<T>(batches: AsyncIterable<T[]>): Promise<T[]> {
  const items: T[] = [];
  for await (const batch of batches) items.push(...batch);
  return items;
}

describe('readLines', () => {
  it('has every line with its number, however the text is cut into chunks', () =>
    fc.assert(
      fc.asyncProperty(fc.array(text.map((one) => one.replaceAll('\n', ''))), size, async (lines, bytes) => {
        const given = lines.map((line) => `${line}\n`).join('');
        const found = await all(readLines(chunks(given, bytes), { lastLineMayBeOpen: false }));
        const expected = lines.map((line, i) => ({
          no: i + 1,
          text: i === 0 ? line.replace(/^\uFEFF/, '') : line,
        }));
        expect(found).to.deep.equal(expected);
      }),
    ));
});

describe('readJson', () => {
  it('has the values at its paths, however the text is cut into chunks', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue()),
        fc.dictionary(text, fc.jsonValue()),
        fc.jsonValue(),
        size,
        async (array, map, one, bytes) => {
          const value = { x: one, a: { list: array, y: one }, map: { ...map }, last: one };
          const containers: Containers = new Map();
          const paths = ['a.list.*', 'map.*', 'last', 'missing.*'];
          const found = await all(readJson(chunks(JSON.stringify(value, null, 1), bytes), paths, containers));
          // As JSON.parse reads them, which has no -0 after stringify.
          const read = JSON.parse(JSON.stringify(value)) as typeof value;
          const expected: JsonMember[] = [
            ...read.a.list.map((item, key) => ({ parent: 'a.list', key, value: item })),
            ...Object.entries(read.map).map(([key, item]) => ({ parent: 'map', key, value: item })),
            { parent: '', key: 'last', value: read.last },
          ];
          const byKey = (a: JsonMember, b: JsonMember) => (String(a.key) < String(b.key) ? -1 : 1);
          expect([...found].sort(byKey)).to.deep.equal(expected.sort(byKey));
          expect(Object.fromEntries(containers)).to.deep.equal({
            '': 'object',
            'a.list': 'array',
            map: 'object',
          });
        },
      ),
    ));
});

describe('CopyReader', () => {
  const quoted = (field: string) => `"${field.replaceAll('"', '""')}"`;
  it('has the wanted fields, however the text is cut into chunks', () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text, text)), size, fc.boolean(), (records, bytes, always) => {
        const field = (one: string) => (always || /[",\n]/.test(one) ? quoted(one) : one);
        const csv = [['b', 'readme', 'a'], ...records]
          .map((record) => `${record.map(field).join(',')}\n`)
          .join('');
        const reader = new CopyReader(['a', 'b']);
        const buffer = Buffer.from(csv);
        const found: string[][] = [];
        for (let i = 0; i < buffer.length; i += bytes)
          found.push(...reader.read(buffer.subarray(i, i + bytes)));
        reader.end();
        expect(found).to.deep.equal(records.map(([b, , a]) => [a, b]));
      }),
    ));
});

describe('NameTable', () => {
  it('is a map of lists', () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.string({ maxLength: 2 }), text)), async (pairs) => {
        const table = await NameTable.create();
        const map = new Map<string, string[]>();
        for (const [name, value] of pairs) {
          table.push(table.add(name), value);
          map.set(name, [...(map.get(name) ?? []), value]);
        }
        const positions = Array.from({ length: table.size }, (_, i) => i);
        expect(positions.map((i) => [table.nameAt(i), [...table.textsOf(i)].reverse()])).to.deep.equal([
          ...map,
        ]);
        expect(positions.map((i) => table.lastOf(i))).to.deep.equal(
          [...map.values()].map((values) => values.at(-1)),
        );
        expect([...map.keys()].map((name) => table.find(name))).to.deep.equal(positions);
        expect(table.find('missing')).to.equal(-1);
      }),
    ));

  it('holds texts of any size', async () => {
    const table = await NameTable.create();
    const long = ['x'.repeat(2 ** 20 - 8), 'y'.repeat(3_000_000), 'z'.repeat(2 ** 20 - 7)];
    for (const [i, one] of [...long, 'short', ...long].entries()) table.push(table.add(one), `${i}${one}`);
    expect(table.size).to.equal(4);
    for (const [i, one] of [...long, 'short'].entries()) {
      expect(table.nameAt(i) === one).to.equal(true);
      expect(table.lastOf(i) === `${i === 3 ? 3 : i + 4}${one}`).to.equal(true);
    }
  });

  it('has at most 2,000,000 names', async function () {
    this.timeout(60_000);
    const table = await NameTable.create();
    for (let i = 0; i < 2_000_000; i++) table.add(String(i));
    expect(table.add('7')).to.equal(7);
    const message = 'the list has more than 2000000 names, which is the limit of this format';
    expect(() => table.add('more')).to.throw(message);
  });
});
