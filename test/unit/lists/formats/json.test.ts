import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import type { JsonPaths } from '../../../../src/config/json-paths.js';
import { Document, Documents } from '../../../../src/lists/fetch/documents.js';
import { jsonFormat, MAX_PAGES } from '../../../../src/lists/formats/json.js';
import { convert, inTurn, useListServer, type Answer } from '../../../support/list-server.js';

describe('The format json', () => {
  const serve = useListServer();
  const convertFrom = async (paths: JsonPaths, ...answers: Answer[]) => {
    const server = await serve(inTurn(...answers.map((answer) => () => answer)));
    const outcome = await convert('json', `${server.origin}/api/list?a=1`, { paths });
    return { outcome, requests: server.requests.map(({ url }) => url), origin: server.origin };
  };
  const root = { items: [] };
  const byName = { items: [], name: ['n'] };

  it('takes strings of an array or keys of a map', async () => {
    expect((await convertFrom(root, '["b", "a", "b"]')).outcome).to.deep.equal([
      { name: 'b' },
      { name: 'a' },
    ]);
    const map = { items: ['all'], version: ['v'] };
    const { outcome } = await convertFrom(map, '{"x":[1],"all":{"b":{"v":1},"a":{"v":"2.0"},"c":{}}}');
    expect(outcome).to.deep.equal([
      { name: 'b', version: '1' },
      { name: 'a', version: '2.0' },
      { name: 'c', version: '' },
    ]);
  });

  it('of a repeated name, takes the last entry, at the place of the first one', async () => {
    const paths = { ...byName, version: ['v'], weight: ['w'] };
    const { outcome } = await convertFrom(
      paths,
      '[{"n":"a","v":"1","w":5},{"n":"b","w":7},{"n":"a","v":"2"}]',
    );
    expect(outcome).to.deep.equal([
      { name: 'a', version: '2', weight: '0' },
      { name: 'b', version: '', weight: '7' },
    ]);
  });

  it('follows absolute and relative addresses or tokens', async () => {
    const next = { path: ['next'], parameter: undefined };
    const pages = ['{"i":["a"],"next":"?p=2"}', '{"next":"/other","i":["b"]}', '{"i":["c"],"next":false}'];
    const followed = await convertFrom({ items: ['i'], next }, ...pages);
    expect(followed.outcome).to.deep.equal([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
    expect(followed.requests).to.deep.equal(['/api/list?a=1', '/api/list?p=2', '/other']);
    const tokens = { items: ['i'], next: { path: ['m', 't'], parameter: 'from' } };
    const sent = await convertFrom(
      tokens,
      '{"m":{"t":"x&y"},"i":["a"]}',
      '{"m":{"t":7},"i":[]}',
      '{"m":{},"i":["b"]}',
    );
    expect(sent.outcome).to.deep.equal([{ name: 'a' }, { name: 'b' }]);
    expect(sent.requests).to.deep.equal([
      '/api/list?a=1',
      '/api/list?a=1&from=x%26y',
      '/api/list?a=1&from=7',
    ]);
  });

  it('follows Link, whatever else the header has', async () => {
    const linked = (link: string, body: string) => (response: ServerResponse) =>
      void response.setHeader('Link', link).end(body);
    for (const link of [
      '</2>; rel="next"',
      '</1>; rel=prev, </2>; title="a, </3>; rel=next"; rel=next',
      '</2>;rel="last NEXT"',
    ]) {
      const { outcome, requests } = await convertFrom(
        root,
        linked(link, '["a"]'),
        linked('</1>; rel="prev"', '["b"]'),
      );
      expect(outcome, link).to.deep.equal([{ name: 'a' }, { name: 'b' }]);
      expect(requests[1]).to.equal('/2');
    }
    for (const link of ['</2>; rel="nextish"', '</2>; anchor="rel=next"', '</2>; xrel=next', 'next']) {
      expect((await convertFrom(root, linked(link, '["a"]'))).requests, link).to.have.length(1);
    }
  });

  const next = { items: ['i'], next: { path: ['next'], parameter: undefined } };

  it('is rejected at the page after the last one that is allowed', async () => {
    const transfer = { windowMs: 60_000, signal: new AbortController().signal };
    const options = { transfer, maxBytes: 1000 };
    let opened = 0;
    /** Pages without a server. */
    class Pages extends Documents {
      override open(url: string): Promise<Document> {
        const body = Readable.from([Buffer.from(`{"i":["${++opened}"],"next":"?${opened}"}`)]);
        const origin = { body, address: url, bytes: undefined, date: new Date() };
        return Promise.resolve(new Document(origin, options, { bytes: 0, textBytes: 0 }));
      }
    }
    const pages = new Pages(['http://127.0.0.1/list'], options);
    const read = async () => {
      const items = jsonFormat(1000).read(pages, {
        jsonPaths: next,
        packageUrlTemplate: undefined,
        nameRule: 'exact',
      });
      for await (const batch of items) expect(batch.length).to.be.at.most(1);
    };
    const failure = await read().catch((error: unknown) => error);
    expect(failure).to.include({ name: 'DatasetError', message: 'there are more than 1000 pages' });
    expect(opened).to.equal(1000);
    expect(MAX_PAGES, 'by the contract').to.equal(100_000);
  });

  it('is rejected at an address that is not of its origin, which is named without secrets', async () => {
    for (const [address, place] of [
      ['http://a:hush@127.0.0.2:1/x?token=hush', 'http://127.0.0.2:1'],
      ['blob:http://HOST/x', 'blob:'],
      ['BLOB:http://HOST/x', 'blob:'],
      ['data:,["b"]', 'data:'],
    ] as const) {
      const server = await serve((_url, { host = '' }) =>
        JSON.stringify({ i: ['a'], next: address.replace('HOST', host) }),
      );
      const expected = place.replace('HOST', new URL(server.url).host);
      const outcome = await convert('json', `${server.origin}/list?token=hush`, { paths: next });
      expect(outcome).to.equal(
        `page 1: an address in the document leads to ${expected} instead of ${server.origin}`,
      );
      expect(server.requests).to.have.length(1);
    }
  });
});
