import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { Documents } from '../../../../src/lists/fetch/documents.js';
import { openTemporaryFile } from '../../../../src/lists/fetch/temporary-file.js';
import {
  convert,
  downloadList,
  inTurn,
  useListServer,
  withStatus,
  type Answer,
} from '../../../support/list-server.js';
import { tar } from '../../../support/tar.js';

const OLD = 'Tue, 02 Jan 2024 03:04:05 GMT';
const NEW = 'Mon, 06 May 2024 07:08:09 GMT';

const withHeaders =
  (headers: Record<string, string>, body: string | Buffer): Answer =>
  (response) =>
    response.writeHead(200, headers).end(body);

describe('The documents of a list', () => {
  const serve = useListServer();
  const snapshotOf = async (
    format: 'lines' | 'debian' | 'json' | 'crates',
    urls: [string, ...string[]],
    known?: object,
  ) => downloadList(format, urls, { known: known as never });
  async function dateOf(...list: Parameters<typeof snapshotOf>): Promise<string | undefined> {
    const snapshot = await snapshotOf(...list);
    await snapshot?.packages.close();
    return snapshot?.takenAt.toUTCString();
  }

  it('are revalidated if there is a single document, and changed bytes with equal packages count as unchanged', async () => {
    let headers: Record<string, string> = { ETag: '"one"' };
    let body: string | Buffer = 'a\nb 1\n';
    const server = await serve((_url, { 'if-none-match': condition }) => (response) => {
      const isKnown = condition === headers['ETag'];
      response.writeHead(isKnown ? 304 : 200, headers).end(isKnown ? '' : body);
    });
    const first = await snapshotOf('lines', [server.url]);
    expect(first?.validators).to.include({ etag: '"one"' });
    expect(await snapshotOf('lines', [server.url], first?.validators)).to.equal(undefined);
    headers = { ETag: '"two"' };
    body = gzipSync('\na\r\n b  1\n');
    const second = await snapshotOf('lines', [server.url], first?.validators);
    expect(second?.digest).to.equal(first?.digest);
    expect(second?.validators).to.include({ etag: '"two"' });
    body = 'a\nb 2\n';
    const third = await snapshotOf('lines', [server.url]);
    expect(third?.digest).not.to.equal(first?.digest);
    for (const snapshot of [first, second, third]) await snapshot?.packages.close();
  });

  it('have no validators if there are several', async () => {
    const page = withHeaders({ ETag: '"one"' }, 'Package: a\nVersion: 1\n');
    const { url } = await serve(() => page);
    const snapshot = await snapshotOf('debian', [url, `${url}?2`]);
    expect(snapshot?.validators).to.equal(undefined);
    await snapshot?.packages.close();
  });

  it('are as new as the newest one', async () => {
    const stanza = 'Package: a\nVersion: 1\n';
    const { url } = await serve(
      inTurn(
        () => withHeaders({ 'Last-Modified': NEW }, stanza),
        () => withHeaders({ 'Last-Modified': OLD, Date: NEW }, stanza),
      ),
    );
    expect(await dateOf('debian', [url, url])).to.equal(NEW);
  });

  it('are dated by Last-Modified, else by the dump or the gzip header, else by Date', async () => {
    const zipped = gzipSync('a\n');
    zipped.writeUInt32LE(Date.parse(OLD) / 1000, 4);
    const modified = { Date: NEW, 'Last-Modified': OLD };
    const { url } = await serve((address) =>
      withHeaders(address.search === '' ? { Date: NEW } : modified, 'a\n'),
    );
    expect(await dateOf('lines', [url])).to.equal(NEW);
    expect(await dateOf('lines', [`${url}?modified`])).to.equal(OLD);
    const gzip = await serve(() => withHeaders({ Date: NEW }, zipped));
    expect(await dateOf('lines', [gzip.url])).to.equal(OLD);
    const tables = { 'd/data/crates.csv': 'id,name\n1,a\n', 'd/data/versions.csv': 'id,num\n', 'd/data/default_versions.csv': 'crate_id,version_id\n', 'd/data/crate_downloads.csv': 'crate_id,downloads\n' }; // prettier-ignore
    const stated = gzipSync(
      tar({ ...tables, 'd/metadata.json': '{"timestamp":"2024-01-02T03:04:05.123456789Z"}' }),
    );
    const dump = await serve(() => withHeaders({ Date: NEW }, stated));
    expect(await dateOf('crates', [dump.url])).to.equal(OLD);
    const silent = await serve(() => withHeaders({ Date: NEW }, tar({ ...tables, 'd/metadata.json': 'x' })));
    expect(await dateOf('crates', [silent.url])).to.equal(NEW);
  });

  it('may be files, which lead only to others in their folder', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'package-registry-search-test-'));
    const url = (name: string) => pathToFileURL(join(folder, name)).href;
    const write = async (name: string, content: unknown) =>
      writeFile(join(folder, name), JSON.stringify(content));
    try {
      await write('packages.json', { includes: { 'all.json': {} } });
      await write('all.json', { packages: { 'a/a': {} } });
      await write('evil.json', { includes: { '../all.json': {} } });
      await write('_all_docs', { rows: [{ id: 'a' }, { id: 'b' }] });
      await utimes(join(folder, 'packages.json'), new Date(NEW), new Date(NEW));
      await utimes(join(folder, 'all.json'), new Date(OLD), new Date(OLD));
      expect(await convert('packagist', url('packages.json'))).to.deep.equal([{ name: 'a/a' }]);
      expect(await dateOf('json', [url('packages.json')])).to.equal(NEW);
      expect(await convert('packagist', url('evil.json'))).to.match(
        /^an address in the document leads out of its folder$/,
      );
      expect(await convert('npm', url('_all_docs'))).to.deep.equal([{ name: 'a' }, { name: 'b' }]);
      expect(await convert('lines', url('missing'))).to.equal('there is no file at the path of the dataset');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('have the user and password of the address, also if they name an address without them', async () => {
    const seen: (string | undefined)[] = [];
    const server = await serve((url, { authorization, host }) => {
      seen.push(authorization);
      return url.pathname === '/2'
        ? '["b"]'
        : withHeaders({ Link: `<http://${host}/2>; rel="next"` }, '["a"]');
    });
    const url = server.url.replace('//', '//user:hush@');
    expect(await convert('json', url)).to.deep.equal([{ name: 'a' }, { name: 'b' }]);
    expect(new Set(seen)).to.deep.equal(new Set([`Basic ${Buffer.from('user:hush').toString('base64')}`]));
  });

  it('are asked for with DATASET_AUTHORIZATION, which no other origin sees', async () => {
    const seen: (string | undefined)[] = [];
    const other = await serve((_url, { authorization }) => {
      seen.push(authorization);
      return 'name,url\na,https://registry.example/a\n';
    });
    const own = await serve((url, { authorization }) => {
      seen.push(authorization);
      if (url.pathname === '/list') return withStatus(302, { Location: '/again' })();
      return withStatus(307, { Location: other.url })();
    });
    const authorization = 'Bearer hush-hush';
    await convert('jsonl', `${own.origin}/list`, { authorization });
    await convert('csv', `${own.origin}/list`, { authorization });
    expect(seen).to.deep.equal([
      authorization,
      authorization,
      undefined,
      authorization,
      authorization,
      undefined,
    ]);
    const pages = await serve((_url, { authorization: sent, host }) => {
      seen.push(sent);
      return withHeaders(sent === undefined ? {} : { Link: `<http://${host}/2>; rel="next"` }, '["a"]');
    });
    seen.length = 0;
    await convert('json', pages.url, { authorization });
    expect(seen).to.deep.equal([authorization, authorization]);
  });

  it('are waited for as long as Retry-After says, up to five minutes', async () => {
    const began = performance.now();
    const soon = await serve(inTurn(withStatus(429, { 'Retry-After': '1' }), () => 'a\n'));
    expect(await convert('lines', soon.url)).to.deep.equal([{ name: 'a' }]);
    expect(performance.now() - began).to.be.within(990, 5000);
    for (const late of ['301', new Date(Date.now() + 400_000).toUTCString()]) {
      const server = await serve(withStatus(503, { 'Retry-After': late }));
      expect(await convert('lines', server.url)).to.equal(
        "the dataset's server responded with 503 instead of 200",
      );
      expect(server.requests).to.have.length(1);
    }
  });

  it('end at their deadline, when they stall, and when they are stopped', async () => {
    const stalled = await serve(() => (response) => response.write('a\n'));
    const slow = /^the dataset could not be downloaded: fewer than 10240 bytes arrived within 0.1 s$/;
    expect(await convert('lines', stalled.url, { windowMs: 100 })).to.match(slow);
    const busy = await serve(withStatus(503, { 'Retry-After': '60' }));
    expect(await convert('lines', busy.url, { timeoutSeconds: 0.2 })).to.match(
      /^the dataset could not be downloaded within 0.2 s/,
    );
    const stop = new AbortController();
    const running = downloadList('lines', stalled.url, {}, stop.signal);
    setTimeout(() => stop.abort(new Error('stopped')), 50);
    const outcome = await running.catch((error: unknown) => (error as Error).message);
    expect(outcome).to.equal('stopped');
  });

  it('are not read on when the rebuild is stopped, once they are stored', async () => {
    const { url } = await serve(() => withHeaders({}, 'a\nb\n'));
    const stopping = new AbortController();
    const transfer = { windowMs: 60_000, signal: stopping.signal };
    const documents = new Documents([url], { transfer, maxBytes: 1000, reservedBytes: 0 });
    const document = await documents.open(url);
    const file = await openTemporaryFile();
    await documents.write(document.bytes(), file);
    expect(await text(documents.textOf(file))).to.equal('a\nb\n');
    stopping.abort();
    const read = text(documents.textOf(file)).finally(() => file.close());
    expect(await read.catch((error: unknown) => error)).to.have.property('name', 'AbortError');
  });

  it('are limited together, compressed and as text', async () => {
    const { url } = await serve(() => gzipSync('x'.repeat(1000).concat('\n').repeat(100)));
    expect(await convert('lines', url, { maxBytes: 50_000 })).to.equal(
      'the dataset is larger than 50000 bytes',
    );
    const pages = await serve((address) => {
      const page = Number(address.searchParams.get('page') ?? 1);
      return withHeaders(
        { Link: `<?page=${page + 1}>; rel="next"` },
        JSON.stringify(['a']) + ' '.repeat(999),
      );
    });
    expect(await convert('json', pages.url, { maxBytes: 50_000 })).to.equal(
      'page 50: the dataset is larger than 50000 bytes',
    );
  });

  it('are read from their beginning each time', async () => {
    const { url } = await serve(() => 'a\nb\n');
    const snapshot = await snapshotOf('lines', [url]);
    for (let i = 0; i < 2; i++) {
      const names: string[] = [];
      for await (const { entries } of snapshot?.packages.read() ?? [])
        names.push(...entries.map(({ name }) => name));
      expect(names).to.deep.equal(['a', 'b']);
    }
    await snapshot?.packages.close();
  });
});
