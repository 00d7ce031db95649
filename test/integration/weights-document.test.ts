import { hash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import {
  LOGIN_PAGE,
  useListServer,
  withStatus,
  type Answer,
  type ListServer,
} from '../support/list-server.js';
import { reasonOf } from '../../src/rebuild/failure-reason.js';
import { logLines, newSlug, rebuildHere, startService, type Service } from '../support/service.js';
import { refreshes } from '../support/refreshes.js';
import { waitFor } from '../support/wait-for.js';

/** What the origin has: replaced during a test. Each document has the `ETag` of its content. */
interface Documents {
  '/packages': string | Buffer;
  '/weights': Answer;
}

describe('A document of weights', function () {
  this.timeout(120_000);
  const startOrigin = useListServer();
  const services: Service[] = [];

  afterEach(async () => {
    for (const service of services.splice(0)) await service.end();
  });

  /** An origin with validators for both documents. */
  async function origin(documents: Documents): Promise<ListServer> {
    return startOrigin(({ pathname }, headers) => {
      const document = documents[pathname as keyof Documents];
      if (typeof document !== 'string' && !Buffer.isBuffer(document)) return document;
      const etag = `"${hash('sha1', document)}"`;
      if (headers['if-none-match'] === etag) return withStatus(304, { ETag: etag })();
      return (response) => response.writeHead(200, { ETag: etag }).end(document);
    });
  }

  /** The variables that lead to both documents. */
  function variablesOf({ origin: url }: ListServer) {
    return { DATASET_URL: `${url}/packages`, WEIGHTS_URL: `${url}/weights` };
  }

  /** Builds a snapshot, and starts a service on it. */
  async function serve(server: ListServer, env: Record<string, string> = {}): Promise<Service> {
    const slug = newSlug();
    const variables = { ...variablesOf(server), ...env };
    await rebuildHere(variables, slug);
    const service = await startService(variables, slug);
    services.push(service);
    return service;
  }

  /** Rebuilds, and makes the service look for the result. @returns why it failed; undefined if it did not. */
  async function rebuilt(
    { slug, refresh }: Service,
    variables: Record<string, string>,
    force = false,
  ): Promise<string | undefined> {
    const reason = await rebuildHere(variables, slug, { force }).then(() => undefined, reasonOf);
    await refresh();
    return reason;
  }

  async function weightsOf(service: Service): Promise<Record<string, number | undefined>> {
    const { body } = await service.get('/browse?limit=500');
    return Object.fromEntries((body.results as PackageEntry[]).map(({ name, weight }) => [name, weight]));
  }

  it('wins over the column of the dataset', async () => {
    const packages = packagesNamed(['Foo.Bar', 'a_b', 'none']).map((entry) => ({ ...entry, weight: 123 }));
    const weights = gzipSync(
      '{"project":"Foo.Bar","n":3}\n{"project":"foo-bar","n":5}\n{"project":"x","n":4}\n{"project":"a_b"}',
    );
    const server = await origin({ '/packages': toCsv(packages), '/weights': weights });
    const service = await serve(server, { WEIGHTS_COLUMNS: 'project, n' });
    expect(await weightsOf(service)).to.deep.equal({ 'Foo.Bar': 3, a_b: 0, none: 0 });
    expect((await service.get('/stats')).body).to.include({ has_weights: true });
    const read = logLines.findLast(({ msg }) => msg === 'the weights were read');
    expect(read).to.include({ names: 4, unknown: 2 });
  });

  for (const [what, redis] of [
    ['with Redis', {}],
    ['without Redis', { REDIS_URL: '' }],
  ] as const) {
    it(`is built again only if one of the documents has changed, ${what}`, async () => {
      const documents = {
        '/packages': toCsv(packagesNamed(['a', 'b'])),
        '/weights': 'name,weight\na,1\nb,2\n',
      };
      const server = await origin(documents);
      const service = await serve(server, { REBUILD_INTERVAL_SECONDS: '1', ...redis });
      const built = async (weights: object) => {
        await waitFor(async () => isDeepStrictEqual(await weightsOf(service), weights), 'a build', 30_000);
        await service.idle();
        await refreshes(service, 1);
      };
      await refreshes(service, 2);
      const sent = server.requests.filter(({ headers }) => headers['if-none-match'] === undefined);
      expect(sent.map(({ url }) => url)).to.deep.equal(['/packages', '/weights']);

      documents['/weights'] = 'name,weight\na,10\nb,20\nc,5\n';
      await built({ a: 10, b: 20 });
      expect((await service.get('/changes')).body).to.include({ count: 0 });
      documents['/packages'] = toCsv(packagesNamed(['a', 'b', 'c']));
      await built({ a: 10, b: 20, c: 5 });
      expect(service.outcomes()).to.include({ rebuilt: 2, failed: 0 });
    });
  }

  it('counts as unchanged if its bytes are equal, whatever its validators', async () => {
    let sent = 0;
    const server = await startOrigin(({ pathname }, headers) => (response) => {
      const etag = `"${sent}"`;
      if (headers['if-none-match'] === etag) return void response.writeHead(304, { ETag: etag }).end();
      const dataset = toCsv(packagesNamed(['a']));
      if (pathname === '/packages') return void response.end(dataset);
      const body = 'name,weight\na,1\n';
      return void response.writeHead(200, { ETag: `"${Math.min(++sent, 2)}"` }).end(body);
    });
    const service = await serve(server, { REBUILD_INTERVAL_SECONDS: '1' });
    sent = 1;
    await refreshes(service, 3);
    expect(service.outcomes().rebuilt).to.equal(0);
  });

  it('that appears, disappears or has other members is built by a refresh', async () => {
    const documents = {
      '/packages': toCsv(packagesNamed(['a'])),
      '/weights': 'name,weight,other\na,1,2\n',
    };
    const server = await origin(documents);
    const { WEIGHTS_URL, ...without } = variablesOf(server);
    const service = await serve(server, { WEIGHTS_URL: '' });
    expect(await weightsOf(service)).to.deep.equal({ a: undefined });
    for (const [env, weight] of [
      [{ WEIGHTS_URL }, 1],
      [{ WEIGHTS_URL, WEIGHTS_COLUMNS: 'name,other' }, 2],
      [{}, undefined],
    ] as const) {
      const refresh = () => rebuildHere({ ...without, ...env }, service.slug, { skipIf: 'unchanged' });
      expect(await refresh()).to.be.a('string');
      expect(await refresh()).to.equal(undefined);
      await service.refresh();
      expect(await weightsOf(service)).to.deep.equal({ a: weight });
    }
  });

  it('that fails keeps the old snapshot, with a reason that names it', async () => {
    const documents: Documents = {
      '/packages': toCsv(packagesNamed(['a', 'b'])),
      '/weights': 'name,weight\na,1\nb,2\n',
    };
    const server = await origin(documents);
    const service = await serve(server);
    const id = await service.snapshot();
    for (const [weights, reason] of [
      [undefined, /^WEIGHTS_URL: the dataset's server responded with 404 instead of 200$/],
      [
        LOGIN_PAGE,
        /^WEIGHTS_URL: line 1: the header has no column "name" \(WEIGHTS_COLUMNS\): "<!DOCTYPE html>"$/,
      ],
      [gzipSync('name,weight\na,1\n').subarray(0, -4), /^WEIGHTS_URL: the gzip is cut off or damaged/],
    ] as const) {
      documents['/weights'] = weights;
      expect(await rebuilt(service, variablesOf(server))).to.match(reason);
      expect(await service.snapshot()).to.equal(id);
      expect(await service.indices()).to.have.length(1);
    }
    expect(await weightsOf(service)).to.deep.equal({ a: 1, b: 2 });
  });

  it('has invalid rows, which are added to the invalid rows of the dataset', async () => {
    const packages = `${toCsv(packagesNamed(['a', 'b']))}9,,1,https://registry.example/\n`;
    const server = await origin({ '/packages': packages, '/weights': 'name,weight\na,1\n,2\nb,3\n' });
    const strict = rebuildHere({ ...variablesOf(server), DATASET_MAX_BAD_ROWS: '1' }, newSlug());
    expect(await strict.catch(reasonOf)).to.equal(
      'WEIGHTS_URL: line 3: name is empty (more rows are invalid than DATASET_MAX_BAD_ROWS=1 allows)',
    );
    const lenient = await serve(server, { DATASET_MAX_BAD_ROWS: '2' });
    expect(await weightsOf(lenient)).to.deep.equal({ a: 1, b: 3 });
  });

  it('is rejected if fewer than half of the names that had a weight have one now, unless forced', async () => {
    const documents = {
      '/packages': toCsv(packagesNamed(['a', 'b', 'c'])),
      '/weights': 'name,weight\na,1\nb,1\nc,1\n',
    };
    const server = await origin(documents);
    const service = await serve(server);
    documents['/weights'] = 'name,weight\na,9\nb,0\nc,\n';
    expect(await rebuilt(service, variablesOf(server))).to.equal(
      'WEIGHTS_URL: of 3 names that had a weight, 1 have one now: fewer than half; accept it with force=true or --force',
    );
    expect(await weightsOf(service)).to.deep.equal({ a: 1, b: 1, c: 1 });
    expect(await rebuilt(service, variablesOf(server), true)).to.equal(undefined);
    expect(await weightsOf(service)).to.deep.equal({ a: 9, b: 0, c: 0 });
  });

  it('is asked for with DATASET_AUTHORIZATION only at the origin of the dataset', async () => {
    const documents: Documents = {
      '/packages': toCsv(packagesNamed(['a'])),
      '/weights': 'name,weight\na,1\n',
    };
    const server = await origin(documents);
    const other = await startOrigin(({ pathname }) =>
      pathname === '/moved'
        ? withStatus(302, { Location: `${server.origin}/weights` })()
        : documents['/weights'],
    );
    const secret = { DATASET_AUTHORIZATION: 'Bearer weights-secret-of-the-test' };
    const tokens = (requests: ListServer['requests'], path: string) =>
      requests.filter(({ url }) => url.startsWith(path)).map(({ headers }) => headers.authorization);

    await serve(server, secret);
    expect(tokens(server.requests, '/weights')).to.deep.equal([secret.DATASET_AUTHORIZATION]);
    for (const path of ['/weights', '/moved']) {
      server.requests.splice(0);
      other.requests.splice(0);
      const service = await serve(server, { ...secret, WEIGHTS_URL: `${other.origin}${path}` });
      expect(await weightsOf(service)).to.deep.equal({ a: 1 });
      expect(tokens(server.requests, '/packages')).to.deep.equal([secret.DATASET_AUTHORIZATION]);
      expect(tokens(other.requests, path)).to.deep.equal([undefined]);
      expect(tokens(server.requests, '/weights')).to.deep.equal(path === '/moved' ? [undefined] : []);
    }
  });
});
