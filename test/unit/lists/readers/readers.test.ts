import { Readable } from 'node:stream';
import { expect } from 'chai';
import fc from 'fast-check';
import { CopyReader } from '../../../../src/lists/readers/postgres-copy.js';
import { readJson, type Containers, type JsonMember } from '../../../../src/lists/readers/json-members.js';
import { readLines } from '../../../../src/lists/readers/text-lines.js';

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
        const found: { no: number; text: string }[] = [];
        for await (const { first, texts, invalid, isUnterminated } of readLines(chunks(given, bytes))) {
          expect([invalid.size, isUnterminated]).to.deep.equal([0, false]);
          found.push(...texts.map((text, i) => ({ no: first + i, text })));
        }
        const expected = lines.map((line, i) => ({
          no: i + 1,
          text: i === 0 ? line.replace(/^\uFEFF/, '') : line,
        }));
        expect(found).to.deep.equal(expected);
      }),
    ));
});

const byKey = (a: JsonMember, b: JsonMember) => (String(a.key) < String(b.key) ? -1 : 1);
const KINDS = { '': 'object', 'a.list': 'array', map: 'object' };

describe('readJson', () => {
  it('has the values at its paths, however the text is cut into chunks', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue()),
        // The parser drops some U+FEFF.
        fc.dictionary(
          text.filter((one) => !one.includes('\uFEFF')),
          fc.jsonValue(),
        ),
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
          ].map((member) => ({ ...member, isLossy: false }));
          expect([...found].sort(byKey)).to.deep.equal(expected.sort(byKey));
          expect(Object.fromEntries(containers)).to.deep.equal(KINDS);
        },
      ),
    ));

  it('marks a value with bytes that are not UTF-8, wherever the text is cut', async () => {
    const before = `{"a":[${'"filler",'.repeat(200)}"m`;
    const whole = Buffer.concat([Buffer.from(before), Buffer.of(0xe4, 0xb8), Buffer.from('n"]}')]);
    for (let cut = before.length - 1; cut <= before.length + 3; cut++) {
      const source = Readable.from([whole.subarray(0, cut), whole.subarray(cut)]);
      const [last] = (await all(readJson(source, ['a.*']))).slice(-1);
      expect(last, `cut at ${cut}`).to.include({ value: 'm\uFFFDn', isLossy: true });
    }
  });
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
        const buffer = Buffer.from(csv);
        const found: unknown[] = [];
        const reader = new CopyReader('t.csv', ['a', 'b'], (record) => found.push(record));
        for (let i = 0; i < buffer.length; i += bytes) reader.read(buffer.subarray(i, i + bytes));
        reader.end();
        expect(found).to.deep.equal(records.map(([b, , a], i) => ({ at: i + 2, values: [a, b] })));
      }),
    ));
});
