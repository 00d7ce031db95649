import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { readCsv, type CsvRecord } from '../../../../src/lists/readers/csv-records.js';
import { chunksOf, itemsOf, streamOf } from '../../../support/batches.js';

/** All records of a CSV that arrives in these chunks. */
function recordsOf(...chunks: (string | Buffer)[]): Promise<CsvRecord[]> {
  return itemsOf(readCsv(streamOf(chunks.map((chunk) => Buffer.from(chunk)))));
}

/**
 * Records from line 1 on: the fields, or the reason why a line is invalid. The next record begins after the line
 * feeds within the fields.
 */
function records(...expected: (string[] | string)[]): CsvRecord[] {
  let next = 1;
  return expected.map((record) => {
    const line = next;
    next += typeof record === 'string' ? 1 : record.join().split('\n').length;
    return typeof record === 'string' ? { line, reason: record } : { line, fields: record };
  });
}

const BAD_QUOTING = 'bad quoting';
const CARRIAGE_RETURN = 'a carriage return outside quotes';
const NOT_UTF8 = 'not valid UTF-8';
const NEVER_CLOSED = 'a quote is opened and never closed';
const NOT_CLOSED_SOON = 'a quote is opened and not closed within 100 lines or 1048576 bytes';
const BARE_RETURNS = 'lines end with CR alone: end them with LF or CRLF';
const UNTERMINATED = 'the last record does not end with a line end, so the file may be cut off';

describe('readCsv', () => {
  const texts: [what: string, csv: string, expected: (string[] | string)[]][] = [
    ['an empty file', '', []],
    ['LF and CRLF in one file', 'a,b\r\n1,2\n3,4\r\n', [['a', 'b'], ['1', '2'], ['3', '4']]],
    ['empty lines', '\n\r\na\n', [[''], [''], ['a']]],
    ['doubled quotes', '"say ""hi""",""""\n"""",""""""\n', [['say "hi"', '"'], ['"', '""']]],
    ['CR inside quotes', '"a\rb",c\n', [['a\rb', 'c']]],
    ['a quoted last field that ends in CR', 'a,"b\r"\nc,"d\r"\r\n"e\r"\n', [['a', 'b\r'], ['c', 'd\r'], ['e\r']]],
    ['commas, quotes and line ends in one field', '"a"",\r\n,""b",c\n', [['a",\r\n,"b', 'c']]],
    ['control characters, NUL and other line separators', 'a\0b,\u2028\u2029\u0085\v\f,\x1f\n', [['a\0b', '\u2028\u2029\u0085\v\f', '\x1f']]],
    ['a byte order mark only at the start', '\ufeffa,\ufeffb\n\ufeffc,d\n', [['a', '\ufeffb'], ['\ufeffc', 'd']]],
    ['a carriage return that ends no line as invalid', 'a\rb,c\nd\r\r\n"e"\r\r\nf\r\n', [CARRIAGE_RETURN, CARRIAGE_RETURN, BAD_QUOTING, ['f']]],
    ['the lines after a quote that is never closed', 'h\n"a,b\nc,d\r\ne,f\n', [['h'], NEVER_CLOSED, ['c', 'd'], ['e', 'f']]],
    ['the lines after a quote that a later one does not close properly', 'a,"b\nc,d\n"e\nf",g\nh\n', [BAD_QUOTING, ['c', 'd'], ['e\nf', 'g'], ['h']]],
    ['the lines after each of two unclosed quotes', 'a,"b\nc\nd,"e\nf\n', [BAD_QUOTING, ['c'], NEVER_CLOSED, ['f']]],
    ['an unterminated record after an unclosed quote as invalid', '"a\nb\nc"', [NEVER_CLOSED, ['b'], UNTERMINATED]],
    ['an unterminated header as invalid', 'h', [UNTERMINATED]],
    ['lines that end with CR alone as one that is invalid', 'h\r1\r2\r', [BARE_RETURNS]],
    ['the same after a header that ends with LF', 'h\n1\r2', [['h'], BARE_RETURNS]],
  ]; // prettier-ignore
  for (const [what, csv, expected] of texts) {
    it(`reads ${what}`, async () => {
      expect(await recordsOf(csv)).to.deep.equal(records(...expected));
    });
  }

  it('rejects only the line with a stray quote', async () => {
    for (const line of ['a"b,c', ' "a",b', '"a" ,b', '"a"b,c', '"a"b"c",d', '"a"""b"c']) {
      const withHeader = records(['h'], BAD_QUOTING, ['x', 'y']);
      expect(await recordsOf(`h\n${line}\n"x",y\n`), line).to.deep.equal(withHeader);
      expect(await recordsOf(`${line}\r\nx\r\n`), line).to.deep.equal(records(BAD_QUOTING, ['x']));
    }
  });

  it('accepts a quoted field of at most 100 lines', async () => {
    const lines = Array.from({ length: 250 }, (_, i) => `line ${i}`);
    const read = (count: number, end: string) =>
      recordsOf(`h\n"${lines.slice(0, count).join('\n')}${end}\nx\n`);
    expect(await read(100, '"')).to.deep.equal(records(['h'], [lines.slice(0, 100).join('\n')], ['x']));
    const [, closedTooLate] = await read(101, '"');
    expect(closedTooLate).to.deep.equal({ line: 2, reason: NOT_CLOSED_SOON });
    const others = lines.slice(1).map((line) => [line]);
    expect(await read(250, '')).to.deep.equal(records(['h'], NOT_CLOSED_SOON, ...others, ['x']));
  });

  it('rejects only the line that is not UTF-8', async () => {
    // A lone continuation byte, Latin-1, a truncated character, and a surrogate.
    for (const bytes of [[0x80], [0xe9], [0xe6, 0x97], [0xed, 0xa0, 0x80]]) {
      const csv = Buffer.concat([Buffer.from('hé\na,"'), Buffer.from(bytes), Buffer.from('"\nü,"1\n2"\n')]);
      for (const chunks of [[csv], chunksOf(csv, 1)])
        expect(await recordsOf(...chunks)).to.deep.equal(records(['hé'], NOT_UTF8, ['ü', '1\n2']));
    }
  });

  it('rejects a whole record whose last line is not UTF-8', async () => {
    const csv = Buffer.from('h\n"a\nb\n\xff"\n"c"\n', 'latin1');
    const expected = [...records(['h'], NOT_UTF8), { line: 5, fields: ['c'] }];
    expect(await recordsOf(csv)).to.deep.equal(expected);
  });

  it('replaces invalid bytes only in the column `description`', async () => {
    const csv = Buffer.from('description,h\n"a\xff\n\xe6\x97",b\n\xff,\xff\n\xff,"b\nc,d\n', 'latin1');
    const rows = [['a\ufffd\n\ufffd', 'b'], NOT_UTF8, NEVER_CLOSED, ['c', 'd']];
    expect(await recordsOf(csv)).to.deep.equal(records(['description', 'h'], ...rows));
  });

  it('rejects a line that says how fields are separated', async () => {
    for (const [line, quoted] of [
      ['sep=,\n', '"sep=,"'],
      ['\uFEFFsep=;\r\n', '"sep=;"'],
      ['"SEP=\t"\n', '"\\"SEP=\\t\\""'],
    ] as const) {
      const message = `line 1: remove ${quoted}, which only spreadsheets read`;
      await rejects(recordsOf(`${line}name,url\n`), { name: 'DatasetError', message });
    }
    expect(await recordsOf('h\nsep=,\n')).to.have.length(2);
  });

  it('rejects a last record without a line end, even if it looks complete', async () => {
    for (const last of ['a', 'a,b', '"a"', '"a', ' ', '\r', 'a\r', '"a"\r', '\ufeff']) {
      const read = await recordsOf(`h\n${last}`);
      expect(read, JSON.stringify(last)).to.deep.equal(records(['h'], UNTERMINATED));
    }
  });

  describe('with long lines', () => {
    const CHUNK = 64 * 1024;
    const MEBIBYTE = 1024 * 1024;

    it('rejects the file at a line of more than 1 MiB', async () => {
      const longest = 'x'.repeat(MEBIBYTE);
      expect(await recordsOf('h\n', longest, '\n')).to.deep.equal(records(['h'], [longest]));
      const tooLong = `h\n"a\nb"\n${longest}${longest}`;
      const message = 'line 4: longer than 1048576 bytes, so this is not CSV';
      const expected = { name: 'DatasetError', message };
      await rejects(recordsOf(...chunksOf(Buffer.from(tooLong), CHUNK)), expected);
      await rejects(recordsOf(`${tooLong}\n`), expected);
      const inBytes = `h\n"a\nb"\n${'é'.repeat(MEBIBYTE / 2 + 1)}\n`;
      await rejects(recordsOf(inBytes), expected);
      // U+FFFD, which replaces each of these bytes, has three.
      const invalid = Buffer.alloc(MEBIBYTE, 0xe9);
      const lines = Buffer.concat([Buffer.from('h\n'), invalid, Buffer.from('\nx\n')]);
      expect(await recordsOf(lines)).to.deep.equal(records(['h'], NOT_UTF8, ['x']));
      await rejects(recordsOf('h\r', longest, longest), { message: `line 1: ${BARE_RETURNS}` });
    });

    it('buffers at most 1 MiB inside quotes', async () => {
      const line = 'x'.repeat(MEBIBYTE / 2);
      const csv = Buffer.from(`"${line}\n${line}\n${line}"\n`);
      const expected = records(NOT_CLOSED_SOON, [line], BAD_QUOTING);
      expect(await recordsOf(...chunksOf(csv, CHUNK))).to.deep.equal(expected);
    });

    it('reads a quoted field of 1 MiB up to the line that closes it', async () => {
      const [within, beyond] = ['x'.repeat(MEBIBYTE - 2), 'x'.repeat(MEBIBYTE - 1)];
      expect(await recordsOf(`"${within}\n"\n`)).to.deep.equal(records([`${within}\n`]));
      expect(await recordsOf(`"${beyond}\n"\n`)).to.deep.equal(records(NOT_CLOSED_SOON, NEVER_CLOSED));
    });
  });

  describe('of a hostile file', function () {
    // Of work: quadratic time would be minutes.
    this.timeout(10_000);
    const CHUNK = 64 * 1024;
    const line = 'x'.repeat(10 * 1024);
    const lines = (count: number, text: string) => `${text}\n`.repeat(count);
    const mebibyte = (text: string) => text.repeat(1_040_000 / text.length);

    const files: [what: string, csv: string | Buffer][] = [
      ['lines of 10 KiB under an open quote', `"${lines(150, line)}`],
      ['lines of 10 KiB with doubled quotes under an open quote', `"${lines(150, '""'.repeat(5 * 1024))}`],
      ['lines of 10 KiB that each open a quote', lines(150, `"${line}`)],
      ['a quoted field of 1 MiB', `"${mebibyte('x')}"\n`],
      ['1 MiB of doubled quotes', `"${mebibyte('""')}"\n`],
      ['1 MiB of commas', `${mebibyte(',')}\n`],
      ['1 MiB of commas before a stray quote', `${mebibyte(',')}"\n`],
      ['chunks of short quoted lines', lines(60_000, '""')],
      ['chunks of lines with stray quotes', lines(60_000, 'a"')],
      ['chunks of lines that are not UTF-8', Buffer.alloc(200_000, Buffer.from([0xff, 0x0a]))],
    ];
    for (const [what, csv] of files) {
      it(`takes linear time: ${what}`, async () => {
        const bytes = Buffer.concat([Buffer.from('h\n'), Buffer.from(csv), Buffer.from('"last"\n')]);
        const read = await itemsOf(readCsv(streamOf(chunksOf(bytes, CHUNK))));
        const line = bytes.toString('latin1').split('\n').length - 1;
        expect(read.at(-1)).to.deep.equal({ line, fields: ['last'] });
      });
    }
  });
});
