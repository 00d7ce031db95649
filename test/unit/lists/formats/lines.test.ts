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

  it('has only the columns that occur, in jsonl', async () => {
    expect(await convertFrom('jsonl', '{"name":"a","version":null,"url":""}')).to.deep.equal([{ name: 'a' }]);
    const all = '{"weight":0,"url":"https://r.example/a","package_no":7,"version":1.5,"name":"a","other":{}}';
    expect(await convertFrom('jsonl', `${all}\r\n\n{"name":"b","package_no":1}\n`)).to.deep.equal([
      { name: 'a', package_no: '7', version: '1.5', url: 'https://r.example/a', weight: '0' },
      { name: 'b', package_no: '1', version: '', url: '', weight: '0' },
    ]);
  });

  it('reads lines that are longer than a chunk, in compressed lists too', async () => {
    const text = `${JSON.stringify({ readme: 'é'.repeat(1_000_000), name: 'a' })}\n{"name":"b"}`;
    for (const body of [text, gzipSync(text)])
      expect(await convertFrom('jsonl', body)).to.deep.equal([{ name: 'a' }, { name: 'b' }]);
  });
});
