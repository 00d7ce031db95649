import { rejects } from 'node:assert/strict';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { readCsv, type CsvRecord } from '../../../src/rebuild/csv.js';
import { longestBlock } from '../../support/event-loop.js';
import { integer, pick, seededRandom } from '../../../fixtures/random.js';

/** All records of a CSV that arrives in these chunks. */
async function recordsOf(...chunks: (string | Buffer)[]): Promise<CsvRecord[]> {
  const records: CsvRecord[] = [];
  const source = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
  for await (const batch of readCsv(source)) records.push(...batch);
  return records;
}

function chunksOf(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  );
}

/** Emits one chunk per turn of the event loop, as a file stream does. */
async function* inTurns(chunks: Buffer[], nextChunk: () => void): AsyncGenerator<Buffer> {
  for (const chunk of chunks) {
    await nextTurn();
    nextChunk();
    yield chunk;
  }
}

const NEVER_CLOSED = 'a quote is opened and never closed';
const NOT_CLOSED_SOON = 'a quote is opened and not closed within 100 lines or 1048576 bytes';
const UNTERMINATED = 'the last record does not end with a line end, so the file may be cut off';

describe('readCsv', () => {
  const wellFormed: [what: string, csv: string, fields: string[][]][] = [
    ['an empty file', '', []],
    ['LF', 'a,b\n1,2\n', [['a', 'b'], ['1', '2']]],
    ['CRLF', 'a,b\r\n1,2\r\n', [['a', 'b'], ['1', '2']]],
    ['LF and CRLF in one file', 'a,b\r\n1,2\n3,4\r\n', [['a', 'b'], ['1', '2'], ['3', '4']]],
    ['one column', 'name\nx\n', [['name'], ['x']]],
    ['empty fields', ',\n,,\n', [['', ''], ['', '', '']]],
    ['empty lines', '\n\r\na\n', [[''], [''], ['a']]],
    ['white space as part of the fields', ' a ,\tb\n', [[' a ', '\tb']]],
    ['quoted fields', '"a","b"\n', [['a', 'b']]],
    ['some fields quoted', 'a,"b",c\n"a",b,"c"\n', [['a', 'b', 'c'], ['a', 'b', 'c']]],
    ['empty quoted fields', '"",""\n"",a\n', [['', ''], ['', 'a']]],
    ['commas inside quotes', '"a,b",",",c\n', [['a,b', ',', 'c']]],
    ['doubled quotes', '"say ""hi""",""""\n"""",""""""\n', [['say "hi"', '"'], ['"', '""']]],
    ['doubled quotes next to commas', '""",""",""",",","""\n', [['","', '",', ',"']]],
    ['LF inside quotes', '"a\nb",c\n"\n\n",d\n', [['a\nb', 'c'], ['\n\n', 'd']]],
    ['CRLF inside quotes, unchanged', '"a\r\nb",c\r\n"\r\n","\r\n"\r\n', [['a\r\nb', 'c'], ['\r\n', '\r\n']]],
    ['CR inside quotes', '"a\rb",c\n', [['a\rb', 'c']]],
    ['a quoted last field that ends in CR', 'a,"b\r"\nc,"d\r"\r\n"e\r"\n', [['a', 'b\r'], ['c', 'd\r'], ['e\r']]],
    ['a quoted last field that is CR', 'a,"\r"\na,"\r\r"\r\n', [['a', '\r'], ['a', '\r\r']]],
    ['commas, quotes and line ends in one field', '"a"",\r\n,""b",c\n', [['a",\r\n,"b', 'c']]],
    ['characters of every length', 'é,日本,🚀,e\u0301,"ü\n👩‍👩‍👧"\n', [['é', '日本', '🚀', 'e\u0301', 'ü\n👩‍👩‍👧']]],
    ['control characters, NUL and other line separators', 'a\0b,\u2028\u2029\u0085\v\f,\x1f\n', [['a\0b', '\u2028\u2029\u0085\v\f', '\x1f']]],
    ['names of object properties', '__proto__,constructor\ntoString,__proto__\n', [['__proto__', 'constructor'], ['toString', '__proto__']]],
  ]; // prettier-ignore
  for (const [what, csv, fields] of wellFormed) {
    it(`reads ${what}`, async () => {
      const records = await recordsOf(csv);
      expect(records.map((record) => ('fields' in record ? record.fields : record.reason))).to.deep.equal(
        fields,
      );
    });
  }

  it('drops a byte order mark only at the start', async () => {
    expect(await recordsOf('\ufeffa,\ufeffb\n\ufeffc,d\n')).to.deep.equal([
      { line: 1, fields: ['a', '\ufeffb'] },
      { line: 2, fields: ['\ufeffc', 'd'] },
    ]);
    expect(await recordsOf('\ufeff"a\n",b\n')).to.deep.equal([{ line: 1, fields: ['a\n', 'b'] }]);
    expect(await recordsOf('\ufeff\ufeffa\n')).to.deep.equal([{ line: 1, fields: ['\ufeffa'] }]);
  });

  it('numbers records by the line they start on', async () => {
    const csv = 'h\n"a\nb\r\n\n"\nc\n"d\n""\n"\n"e"\n';
    expect(await recordsOf(csv)).to.deep.equal([
      { line: 1, fields: ['h'] },
      { line: 2, fields: ['a\nb\r\n\n'] },
      { line: 6, fields: ['c'] },
      { line: 7, fields: ['d\n"\n'] },
      { line: 10, fields: ['e'] },
    ]);
  });

  const badQuoting: [what: string, line: string][] = [
    ['in the middle of an unquoted field', 'a"b,c'],
    ['at the end of an unquoted field', 'a",c'],
    ['at the end of the line', 'a,b"'],
    ['doubled in an unquoted field', 'a""b,c'],
    ['around a part of a field', 'a "b" c,d'],
    ['after white space', ' "a",b'],
    ['before white space', '"a" ,b'],
    ['after a quoted field', '"a"b,c'],
    ['inside a quoted field, not doubled', '"a"b"c",d'],
    ['three times after a quoted field', '"a"""b"c'],
  ];
  for (const [what, line] of badQuoting) {
    it(`rejects only the line with a stray quote ${what}`, async () => {
      expect(await recordsOf(`h\n${line}\n"x",y\n`)).to.deep.equal([
        { line: 1, fields: ['h'] },
        { line: 2, reason: 'bad quoting' },
        { line: 3, fields: ['x', 'y'] },
      ]);
      expect(await recordsOf(`${line}\r\nx\r\n`)).to.deep.equal([
        { line: 1, reason: 'bad quoting' },
        { line: 2, fields: ['x'] },
      ]);
    });
  }

  it('rejects a carriage return outside quotes that does not end a line', async () => {
    const records = await recordsOf('a\rb,c\nd\r\r\n"e"\r\r\nf\r\n');
    expect(records.map((record) => 'reason' in record)).to.deep.equal([true, true, true, false]);
    expect(records.map(({ line }) => line)).to.deep.equal([1, 2, 3, 4]);
  });

  it('rejects a quote that is never closed, and parses the lines after it', async () => {
    expect(await recordsOf('h\n"a,b\nc,d\r\ne,f\n')).to.deep.equal([
      { line: 1, fields: ['h'] },
      { line: 2, reason: NEVER_CLOSED },
      { line: 3, fields: ['c', 'd'] },
      { line: 4, fields: ['e', 'f'] },
    ]);
    expect(await recordsOf('h\na,"b\n')).to.deep.equal([
      { line: 1, fields: ['h'] },
      { line: 2, reason: NEVER_CLOSED },
    ]);
  });

  it('rejects only the line of a quote that a later one does not close properly', async () => {
    expect(await recordsOf('a,"b\nc,d\n"e\nf",g\nh\n')).to.deep.equal([
      { line: 1, reason: 'bad quoting' },
      { line: 2, fields: ['c', 'd'] },
      { line: 3, fields: ['e\nf', 'g'] },
      { line: 5, fields: ['h'] },
    ]);
  });

  it('rejects two unclosed quotes, each with its own line', async () => {
    expect(await recordsOf('a,"b\nc\nd,"e\nf\n')).to.deep.equal([
      { line: 1, reason: 'bad quoting' },
      { line: 2, fields: ['c'] },
      { line: 3, reason: NEVER_CLOSED },
      { line: 4, fields: ['f'] },
    ]);
  });

  it('accepts a quoted field of at most 100 lines', async () => {
    const field = (lines: number) => Array.from({ length: lines }, (_, i) => `line ${i}`).join('\n');
    expect(await recordsOf(`h\n"${field(100)}"\nx\n`)).to.deep.equal([
      { line: 1, fields: ['h'] },
      { line: 2, fields: [field(100)] },
      { line: 102, fields: ['x'] },
    ]);
    const [, closedTooLate] = await recordsOf(`h\n"${field(101)}"\nx\n`);
    expect(closedTooLate).to.deep.equal({ line: 2, reason: NOT_CLOSED_SOON });
    const [, refused, ...others] = await recordsOf(`h\n"${field(250)}\nx\n`);
    expect(refused).to.deep.equal({ line: 2, reason: NOT_CLOSED_SOON });
    expect(others).to.deep.equal([
      ...Array.from({ length: 249 }, (_, i) => ({ line: i + 3, fields: [`line ${i + 1}`] })),
      { line: 252, fields: ['x'] },
    ]);
  });

  const notUtf8: [what: string, bytes: number[]][] = [
    ['a lone continuation byte', [0x80]],
    ['Latin-1', [0xe9]],
    ['a truncated character', [0xe6, 0x97]],
    ['an overlong form', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a code point that is too large', [0xf4, 0x90, 0x80, 0x80]],
    ['bytes that are never used', [0xff, 0xfe]],
  ];
  for (const [what, bytes] of notUtf8) {
    it(`rejects only the line with ${what}`, async () => {
      const csv = Buffer.concat([Buffer.from('hé\na,"'), Buffer.from(bytes), Buffer.from('"\nü,"1\n2"\n')]);
      const expected = [
        { line: 1, fields: ['hé'] },
        { line: 2, reason: 'not valid UTF-8' },
        { line: 3, fields: ['ü', '1\n2'] },
      ];
      expect(await recordsOf(csv)).to.deep.equal(expected);
      expect(await recordsOf(...chunksOf(csv, 1))).to.deep.equal(expected);
    });
  }

  it('does not close a quote with a line that is not UTF-8', async () => {
    const csv = Buffer.concat([Buffer.from('"a\nb\n'), Buffer.from([0xff]), Buffer.from('"\n"c"\n')]);
    expect(await recordsOf(csv)).to.deep.equal([
      { line: 1, reason: NEVER_CLOSED },
      { line: 2, fields: ['b'] },
      { line: 3, reason: 'not valid UTF-8' },
      { line: 4, fields: ['c'] },
    ]);
  });

  it('rejects a last record without a line end, even if it looks complete', async () => {
    for (const last of ['a', 'a,b', '"a"', '"a', ' ', '\r', 'a\r', '"a"\r', '\ufeff']) {
      expect(await recordsOf(`h\n${last}`), JSON.stringify(last)).to.deep.equal([
        { line: 1, fields: ['h'] },
        { line: 2, reason: UNTERMINATED },
      ]);
    }
    expect(await recordsOf('h')).to.deep.equal([{ line: 1, reason: UNTERMINATED }]);
    expect(await recordsOf('"a\nb\nc"')).to.deep.equal([
      { line: 1, reason: NEVER_CLOSED },
      { line: 2, fields: ['b'] },
      { line: 3, reason: UNTERMINATED },
    ]);
  });

  describe('in chunks', () => {
    const bytes = Buffer.concat([
      Buffer.from('\ufeffno,name\r\n1,é日本🚀\r\n"2","a ""🚀"",\r\n\n,b\r"\r\n3,"c\r"\nd"e,4\n5,'),
      Buffer.from([0xe6, 0x97, 0x2c, 0xff]),
      Buffer.from('\n"ü\n","ß"\n\n6,"open\n7,日\n8,🚀'),
    ]);
    const expected: CsvRecord[] = [
      { line: 1, fields: ['no', 'name'] },
      { line: 2, fields: ['1', 'é日本🚀'] },
      { line: 3, fields: ['2', 'a "🚀",\r\n\n,b\r'] },
      { line: 6, fields: ['3', 'c\r'] },
      { line: 7, reason: 'bad quoting' },
      { line: 8, reason: 'not valid UTF-8' },
      { line: 9, fields: ['ü\n', 'ß'] },
      { line: 11, fields: [''] },
      { line: 12, reason: NEVER_CLOSED },
      { line: 13, fields: ['7', '日'] },
      { line: 14, reason: UNTERMINATED },
    ];

    it('reads the same from chunks of every size', async () => {
      for (let size = 1; size <= bytes.length; size++) {
        expect(await recordsOf(...chunksOf(bytes, size)), `chunks of ${size}`).to.deep.equal(expected);
      }
    });

    it('reads the same when it is cut in two at any byte', async () => {
      for (let at = 0; at <= bytes.length; at++) {
        expect(await recordsOf(bytes.subarray(0, at), bytes.subarray(at)), `cut at ${at}`).to.deep.equal(
          expected,
        );
      }
    });

    it('reads back any fields, cut anywhere', async () => {
      const random = seededRandom(3);
      const pieces = ['a', 'é', '日', '🚀', '"', '""', ',', '\n', '\r', '\r\n', ' ', '\ufeff', '\0', 'name'];
      const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
      const written = (text: string) => (/[",\r\n]/.test(text) || random() < 0.2 ? quoted(text) : text);
      for (let run = 0; run < 100; run++) {
        const rows = Array.from({ length: integer(random, 1, 20) }, () =>
          Array.from({ length: integer(random, 1, 5) }, () =>
            Array.from({ length: integer(random, 0, 6) }, () => pick(random, pieces)).join(''),
          ),
        );
        // The header occupies the position of a byte order mark.
        const csv = ['h', ...rows.map((fields) => fields.map(written).join(','))]
          .map((line) => line + pick(random, ['\n', '\r\n']))
          .join('');
        const [, ...records] = await recordsOf(...chunksOf(Buffer.from(csv), integer(random, 1, 50)));
        expect(
          records.map((record) => ('fields' in record ? record.fields : record)),
          JSON.stringify(csv),
        ).to.deep.equal(rows);
      }
    });
  });

  describe('with long lines', () => {
    const CHUNK = 64 * 1024;
    const MEBIBYTE = 1024 * 1024;

    it('reads a line of 1 MiB', async () => {
      const line = 'x'.repeat(MEBIBYTE);
      expect(await recordsOf('h\n', line, '\n')).to.deep.equal([
        { line: 1, fields: ['h'] },
        { line: 2, fields: [line] },
      ]);
    });

    it('rejects the file at a longer line, and names the line', async () => {
      const endless = Buffer.from(`h\n"a\nb"\n${'x'.repeat(2 * MEBIBYTE)}`);
      await rejects(recordsOf(...chunksOf(endless, CHUNK)), {
        name: 'DatasetError',
        message: 'line 4: longer than 1048576 bytes, so this is not CSV',
      });
    });

    it('rejects a longer line that arrives in one piece with its end', async () => {
      await rejects(recordsOf(`h\n${'x'.repeat(2 * MEBIBYTE)}\n`), /line 2: longer than 1048576 bytes/);
    });

    it('buffers at most 1 MiB inside quotes', async () => {
      const line = 'x'.repeat(MEBIBYTE / 2);
      const csv = Buffer.from(`"${line}\n${line}\n${line}"\n`);
      const [refused, gathered, end] = await recordsOf(...chunksOf(csv, CHUNK));
      expect(refused).to.include({ line: 1 }).and.to.have.property('reason');
      expect(gathered).to.deep.equal({ line: 2, fields: [line] });
      expect(end).to.deep.equal({ line: 3, reason: 'bad quoting' });
    });

    it('reads back quoted fields of many pieces', async () => {
      const pieces = ['a', '🚀', '"', '""', '"""', ',', ' ', '\r', '日'];
      const random = seededRandom(6);
      const field = () => Array.from({ length: 30_000 }, () => pick(random, pieces)).join('');
      for (let run = 0; run < 5; run++) {
        const fields = [field(), `${field()}\r\n${field()}`, ''];
        const csv = fields.map((text) => `"${text.replaceAll('"', '""')}"`).join(',');
        expect((await recordsOf('h\n', csv, '\n'))[1]).to.deep.equal({ line: 2, fields });
      }
    });

    it('reads back a long line without quotes', async () => {
      const fields = Array.from({ length: 20_000 }, (_, i) => (i % 3 === 0 ? '' : `🚀${i}`));
      expect(await recordsOf('h\n', `${fields.join(',')}\r\n`, 'x\n')).to.deep.equal([
        { line: 1, fields: ['h'] },
        { line: 2, fields },
        { line: 3, fields: ['x'] },
      ]);
    });
  });

  describe('of a hostile file', function () {
    this.timeout(60_000);
    const CHUNK = 16 * 1024;
    const MAX_BLOCK_MS = 20;
    const line = 'x'.repeat(10 * 1024);
    const lines = (count: number, text: string) => `${text}\n`.repeat(count);
    const mebibyte = (text: string) => text.repeat(1_040_000 / text.length);

    const files: [what: string, csv: string | Buffer][] = [
      ['lines of 10 KiB under an open quote', `"${lines(150, line)}`],
      ['lines of 10 KiB with doubled quotes under an open quote', `"${lines(150, '""'.repeat(5 * 1024))}`],
      ['lines of 10 KiB that close a quote and open one', `"\n${lines(150, `",${'""'.repeat(5 * 1024)}"`)}`],
      ['lines of 10 KiB that each open a quote', lines(150, `"${line}`)],
      ['a record of 1 MiB in 99 lines', `"${lines(98, line)}"\n`],
      ['a quoted field of 1 MiB', `"${mebibyte('x')}"\n`],
      ['1 MiB of doubled quotes', `"${mebibyte('""')}"\n`],
      ['1 MiB of commas', `${mebibyte(',')}\n`],
      ['1 MiB of commas after a quoted field', `"",${mebibyte(',')}\n`],
      ['1 MiB of commas before a stray quote', `${mebibyte(',')}"\n`],
      ['1 MiB of empty quoted fields', `${mebibyte('"",')}\n`],
      ['1 MiB of carriage returns in quotes', `"${mebibyte('\r')}"\n`],
      ['chunks of line feeds', lines(200_000, '')],
      ['chunks of short quoted lines', lines(60_000, '""')],
      ['chunks of lines with stray quotes', lines(60_000, 'a"')],
      ['chunks of lines that are not UTF-8', Buffer.alloc(200_000, Buffer.from([0xff, 0x0a]))],
    ];
    for (const [what, csv] of files) {
      it(`blocks the event loop for ${MAX_BLOCK_MS} ms at most: ${what}`, async () => {
        const chunks = chunksOf(Buffer.concat([Buffer.from('h\n'), Buffer.from(csv)]), CHUNK);
        const read = async (nextChunk: () => void) => {
          for await (const batch of readCsv(inTurns(chunks, nextChunk))) {
            expect(batch.length).to.be.at.most(500);
          }
        };
        expect(await longestBlock(read, 20, MAX_BLOCK_MS)).to.be.at.most(MAX_BLOCK_MS);
      });
    }
  });
});
