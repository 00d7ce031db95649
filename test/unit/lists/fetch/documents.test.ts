import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import {
  convert,
  downloadList,
  inTurn,
  useListServer,
  withStatus,
  type Answer,
} from '../../../support/list-server.js';
import { newFolder } from '../../../support/run-folder.js';
import { tar } from '../../../support/tar.js';

const OLD = 'Tue, 02 Jan 2024 03:04:05 GMT';
const NEW = 'Mon, 06 May 2024 07:08:09 GMT';

const withHeaders =
  (headers: Record<string, string>, body: string | Buffer): Answer =>
  (response) =>
    response.writeHead(200, headers).end(body);

describe('The documents of a list', () => {
  const serve = useListServer();
  async function dateOf(format: 'debian' | 'crates', urls: string[]): Promise<string | undefined> {
    const snapshot = await downloadList(format, urls);
    await snapshot?.packages.close();
    return snapshot?.takenAt.toUTCString();
  }

  it('have no validators if there are several', async () => {
    const page = withHeaders({ ETag: '"one"' }, 'Package: a\nVersion: 1\n');
    const { url } = await serve(() => page);
    const snapshot = await downloadList('debian', [url, `${url}?2`]);
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

  it('are dated by a dump of crates.io, else by Date', async () => {
    const tables = { 'd/data/crates.csv': 'id,name\n1,a\n', 'd/data/versions.csv': 'id,num\n', 'd/data/default_versions.csv': 'crate_id,version_id\n', 'd/data/crate_downloads.csv': 'crate_id,downloads\n' }; // prettier-ignore
    for (const [metadata, date] of [
      ['{"timestamp":"2024-01-02T03:04:05.123456789Z"}', OLD],
      ['x', NEW],
    ] as const) {
      const dump = gzipSync(tar({ ...tables, 'd/metadata.json': metadata }));
      const { url } = await serve(() => withHeaders({ Date: NEW }, dump));
      expect(await dateOf('crates', [url])).to.equal(date);
    }
  });

  it('may be files, which lead only to others in their folder', async () => {
    const folder = newFolder();
    const url = (name: string) => pathToFileURL(join(folder, name)).href;
    const write = (name: string, content: object) => writeFile(join(folder, name), JSON.stringify(content));
    await write('packages.json', { includes: { 'all.json': {} } });
    await write('all.json', { packages: { 'a/a': {} } });
    await write('evil.json', { includes: { '../all.json': {} } });
    expect(await convert('packagist', url('packages.json'))).to.deep.equal([{ name: 'a/a' }]);
    const reason = 'an address in the document leads out of its folder';
    expect(await convert('packagist', url('evil.json'))).to.equal(reason);
  });

  it('are asked for with DATASET_AUTHORIZATION on every page, which no other origin sees', async () => {
    const other = await serve(() => '["b"]');
    const own = await serve(({ pathname }) => {
      if (pathname === '/list') return withStatus(302, { Location: '/again' })();
      if (pathname === '/again') return withHeaders({ Link: '</2>; rel="next"' }, '["a"]');
      return withStatus(307, { Location: other.url })();
    });
    const authorization = 'Bearer hush-hush';
    const rows = await convert('json', `${own.origin}/list`, { authorization });
    expect(rows).to.deep.equal([{ name: 'a' }, { name: 'b' }]);
    const sent = [own, other].map(({ requests }) => requests.map(({ headers }) => headers.authorization));
    expect(sent).to.deep.equal([[authorization, authorization, authorization], [undefined]]);
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

  it('are limited together, compressed and as text', async () => {
    const { url } = await serve(() => gzipSync('x'.repeat(1000).concat('\n').repeat(100)));
    expect(await convert('lines', url, { maxBytes: 50_000 })).to.equal(
      'the dataset is larger than 50000 bytes',
    );
    const page = JSON.stringify(['a']) + ' '.repeat(999);
    const pages = await serve(({ searchParams }) => {
      const next = Number(searchParams.get('page') ?? 1) + 1;
      return withHeaders({ Link: `<?page=${next}>; rel="next"` }, page);
    });
    expect(await convert('json', pages.url, { maxBytes: 50_000 })).to.equal(
      'page 50: the dataset is larger than 50000 bytes',
    );
  });
});
