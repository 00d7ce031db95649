import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { convert, useListServer, type Body, type ListOptions } from '../../../support/list-server.js';

describe('The formats lines and jsonl', () => {
  const serve = useListServer();
  const convertFrom = async (
    format: 'lines' | 'jsonl',
    body: Body,
    options: ListOptions = {},
    skipped: string[] = [],
  ) => convert(format, (await serve(() => body)).url, options, skipped);

  it('of a repeated name, takes the last line, at the place of the first one', async () => {
    const rows = await convertFrom('lines', 'b 1\na\nb\na 2\n');
    expect(rows).to.deep.equal([
      { name: 'b', version: '' },
      { name: 'a', version: '2' },
    ]);
  });

  it('has only the columns that occur, in jsonl', async () => {
    expect(await convertFrom('jsonl', '{"name":"a","version":null,"url":""}')).to.deep.equal([{ name: 'a' }]);
    const all = '{"weight":0,"url":"https://r.example/a","package_no":7,"version":1.5,"name":"a","other":{}}';
    expect(await convertFrom('jsonl', `${all}\r\n\n{"name":"b","package_no":1}\n`)).to.deep.equal([
      { name: 'a', package_no: '7', version: '1.5', url: 'https://r.example/a', weight: '0' },
      { name: 'b', package_no: '1', version: '', url: '', weight: '0' },
    ]);
  });

  it('keeps every name as it is', async () => {
    const names = ['a,b', '"', 'é日本🚀', '"a","b"', 'x'.repeat(512), 'constructor', '__proto__'];
    const rows = await convertFrom('jsonl', names.map((name) => JSON.stringify({ name })).join('\n'));
    expect(rows).to.deep.equal(names.map((name) => ({ name })));
  });

  it('has bad rows for names that are invalid', async () => {
    const names = ['a\nb,1\nc', 'a\r\nb', 'x'.repeat(1_000_000), '🚀'.repeat(3000)];
    const text = ['ok', ...names].map((name) => JSON.stringify({ name })).join('\n');
    const skipped: string[] = [];
    expect(await convertFrom('jsonl', text, { maxBadRows: 4 }, skipped)).to.deep.equal([{ name: 'ok' }]);
    const broken = 'name has a line break: there may be a stray quote in this line';
    const long = 'name is longer than 512 bytes';
    expect(skipped).to.deep.equal(
      [broken, broken, long, long].map((reason, i) => `line ${i + 2}: ${reason}`),
    );
  });

  it('needs a number in each line of jsonl, or in none', async () => {
    const [one, other] = ['{"name":"a","package_no":1}\n', '{"name":"b"}\n'];
    expect(await convertFrom('jsonl', one + other)).to.equal(
      'line 2: package_no "" is not a number from 1 to 9007199254740991 in digits without leading zeros',
    );
    expect(await convertFrom('jsonl', other + one)).to.equal(
      'line 2: there is a package_no, but the first package has none',
    );
  });

  it('reads lines that are longer than a chunk, in compressed lists too', async () => {
    const text = `${JSON.stringify({ readme: 'é'.repeat(1_000_000), name: 'a' })}\n{"name":"b"}`;
    for (const body of [text, gzipSync(text)])
      expect(await convertFrom('jsonl', body)).to.deep.equal([{ name: 'a' }, { name: 'b' }]);
  });

  for (const [format, body, reason] of [
    ['lines', 'a 1 x\n', 'line 1: expected a name, or a name and a version'],
    ['lines', 'a\n\nb', 'line 3: does not end with a line end, so the list may be cut off'],
    ['lines', '\n[1]\n', 'line 2: expected a name, or a name and a version'],
    ['lines', Buffer.from('a\nb\n\xff\n', 'latin1'), 'line 3: not valid UTF-8'],
    ['lines', 'x'.repeat(17 * 2 ** 20), 'line 1: longer than 16777216 bytes'],
    ['lines', gzipSync('a\nb\n').subarray(0, -1), 'the gzip is cut off or damaged: unexpected end of file'],
    ['lines', gzipSync(gzipSync('a\n')), 'the document is compressed twice'],
    ['lines', '\n \n', 'the list has no packages'],
    ['jsonl', '{"name":"a"}\n\n"b"\n', 'line 3: expected one JSON object a line: "\\"b\\""'],
    ['jsonl', '[{"name":"a"}]\n', 'line 1: expected one JSON object a line: "[{\\"name\\":\\"a\\"}]"'],
    ['jsonl', '{"name":"a"}\n{"version":"1"}\n', 'line 2: name is not a string: it is missing'],
    [
      'jsonl',
      '{"name":"a","version":{"no":1}}',
      'line 1: version is neither a string nor a number: "{\\"no\\":1}"',
    ],
    ['jsonl', '{"name":"a","version":true}', 'line 1: version is neither a string nor a number: "true"'],
    ['jsonl', '{"name":"a\\ud800"}', 'line 1: name has half a surrogate pair: "a\\ud800"'],
  ] as const) {
    it(`rejects ${format} ${JSON.stringify(body.toString().slice(0, 30))}`, async () => {
      expect(await convertFrom(format, body)).to.equal(reason);
    });
  }
});
