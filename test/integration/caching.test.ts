import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { packagesNamed, toCsv } from '../support/datasets.js';
import {
  REBUILD,
  useService,
  useSharedService,
  type TestResponse,
  type Service,
} from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { useReplicaStarter } from '../support/replica-starter.js';

/** One path of each endpoint whose responses are constant for a snapshot. */
const CACHED = [
  '/search?q=lib&limit=500',
  '/browse?page=2',
  '/packages/redis',
  '/lookup?name=redis&name=none',
  '/similar?name=redis',
  '/changes',
  '/changes.atom',
  '/export',
];

const NAMES = ['alpha', 'alphabet', 'beta'];

describe('Caching', () => {
  const suite = useSharedService();

  it('sets ETag, Cache-Control and Vary', async () => {
    for (const path of CACHED) {
      const { headers } = await suite.service.get(path);
      expect(headers.get('ETag')).to.match(/^W\/"[\w-]+"$/);
      expect(headers.get('Cache-Control')).to.equal(
        'public, max-age=30, stale-while-revalidate=300, stale-if-error=86400',
      );
      expect(headers.get('Vary')).to.equal('Accept-Encoding');
    }
  });

  it('responds with 304 only to a matching If-None-Match', async () => {
    for (const path of CACHED) {
      const { headers } = await suite.service.get(path);
      const etag = headers.get('ETag') as string;
      const opaque = etag.slice(2);
      for (const condition of [etag, opaque, '*', `"other", ${etag}`]) {
        const answer = await suite.service.get(path, { headers: { 'If-None-Match': condition } });
        expect(answer.status, condition).to.equal(304);
        expect(answer.text).to.equal('');
        for (const name of ['ETag', 'X-Snapshot', 'Cache-Control', 'Access-Control-Expose-Headers'])
          expect(answer.headers.get(name), name).to.equal(headers.get(name));
      }
      const answer = await suite.service.get(path, { headers: { 'If-None-Match': '"other"' } });
      expect(answer.status).to.equal(200);
    }
  });

  it('gives only equivalent requests the same ETag', async () => {
    const etagOf = async (path: string) => (await suite.service.get(path)).headers.get('ETag');
    expect(await etagOf('/search?q=lib')).to.equal(await etagOf('/search?limit=250&q=%20l%69b&x=y'));
    expect(await etagOf('/browse')).to.equal(await etagOf('/browse?limit=0200&page=1'));
    const different = ['/search?q=lib', '/search?q=Lib', '/search?q=lib&limit=9', '/browse?page=2'];
    expect(new Set(await Promise.all(different.map(etagOf))).size).to.equal(different.length);
  });

  it('lets caches revalidate /stats each time', async () => {
    const first = await suite.service.get('/stats');
    expect(first.headers.get('Cache-Control')).to.equal('no-cache');
    // After a rollback, the current snapshot is older than a cached one, which must not count as current.
    const since = new Date(Date.now() + 60_000).toUTCString();
    const later = await suite.service.get('/stats', { headers: { 'If-Modified-Since': since } });
    expect(later.status).to.equal(200);
  });

  it('sets the same headers for HEAD as for GET', async () => {
    for (const path of [...CACHED, '/stats', '/ping', '/health', '/openapi.json']) {
      const [get, head] = [await suite.service.get(path), await suite.service.get(path, { method: 'HEAD' })];
      expect(head).to.include({ status: 200, text: '' });
      // `fetch` uses another connection for each HEAD, and only bodies have a transfer encoding.
      const others = ['connection', 'date', 'keep-alive', 'transfer-encoding', 'x-request-id'];
      const labels = ({ headers }: TestResponse) => [...headers].filter(([name]) => !others.includes(name));
      expect(labels(head), path).to.deep.equal(labels(get));
    }
  });

  it('compresses if the client accepts it', async () => {
    const path = '/search?q=python';
    const { text: plain } = await suite.service.get(path);
    for (const [accepted, expected] of [
      ['gzip', 'gzip'],
      ['gzip, deflate, br', 'br'],
      ['identity', null],
    ] as const) {
      // `fetch` decompresses the body.
      const answer = await suite.service.get(path, { headers: { 'Accept-Encoding': accepted } });
      expect(answer.headers.get('Content-Encoding'), accepted).to.equal(expected);
      expect(answer.text, accepted).to.equal(plain);
      const bytes = Number(answer.headers.get('Content-Length'));
      if (expected === null) expect(bytes).to.equal(Buffer.byteLength(plain));
      else expect(bytes).to.be.within(1, plain.length / 2);
    }
  });

  it('compresses and tags /openapi.json', async () => {
    const path = '/openapi.json';
    const { headers, text } = await suite.service.get(path, { headers: { 'Accept-Encoding': 'br' } });
    expect(headers.get('Cache-Control')).to.equal('public, max-age=300');
    expect(headers.get('Content-Encoding')).to.equal('br');
    expect(Number(headers.get('Content-Length'))).to.be.within(1000, text.length / 4);
    const condition = { 'If-None-Match': headers.get('ETag') ?? '' };
    expect(await suite.service.get(path, { headers: condition })).to.include({ status: 304, text: '' });
  });
});

describe('Responses', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(NAMES));
  const startReplica = useReplicaStarter(suite);

  /** Exact bytes, which FORMAT_VERSION represents in every ETag, with `TIME` for times. */
  const EXPECTED: Record<string, (slug: string) => string> = {
    '/search?q=ALPHA&limit=2': () =>
      '{"query":"ALPHA","count":2,"results":[' +
      '{  "no":1,"name":"alpha","version":"1.0.0","url":"https://registry.example/alpha","rank":0},\n' +
      '{  "no":2,"name":"alphabet","version":"1.0.0","url":"https://registry.example/alphabet","rank":1}]}',
    '/browse?page=3&limit=1': () =>
      '{"page":3,"limit":1,"results":[{ "no":3,"name":"beta","version":"1.0.0","url":"https://registry.example/beta"}]}',
    '/stats': (slug) =>
      `{"total_${slug}_packages":${NAMES.length},"source":"registry.example","note":"The data is a snapshot that is updated ` +
      'periodically; this one was taken at TIME.","taken_at":"TIME"}',
  };

  it('have the format of FORMAT_VERSION', async () => {
    for (const [path, expected] of Object.entries(EXPECTED)) {
      const { text } = await suite.service.get(path);
      const written = text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
      expect(written, 'raise FORMAT_VERSION with every change').to.equal(expected(suite.service.slug));
    }
  });

  const PATHS = ['/search?q=alpha', '/browse', '/search?q=zz-only-new', '/stats'];
  const etagOf = (answer?: TestResponse) => answer?.headers.get('ETag') ?? '';
  /** The texts with each ETag. */
  const seen = new Map<string, Set<string>>();

  async function ask(service: Service, path: string, condition = ''): Promise<TestResponse> {
    const answer = await service.get(path, { headers: { 'If-None-Match': condition } });
    expect(answer.status).to.be.oneOf([200, 304]);
    const etag = etagOf(answer);
    if (answer.status === 200) seen.set(etag, (seen.get(etag) ?? new Set()).add(answer.text));
    return answer;
  }

  it('of the old snapshot never have an ETag of the new one on any replica', async () => {
    const replicas = [suite.service, await startReplica()];
    const old = await Promise.all(PATHS.map((path) => ask(suite.service, path)));
    // Also with the ETags of the old snapshot: they must stop getting 304 with the flip.
    const askAll = async (service: Service) => [
      ...(await Promise.all(PATHS.map((path) => ask(service, path)))),
      ...(await Promise.all(PATHS.map((path, i) => ask(service, path, etagOf(old[i]))))),
    ];
    await suite.dataset.write(toCsv(packagesNamed([...NAMES, 'zz-only-new', 'new-alpha'])));
    await suite.service.get(REBUILD);
    while (suite.service.isRebuilding()) {
      for (const replica of replicas) await askAll(replica);
      // The rebuild needs the processor, too.
      await pause(20);
    }
    for (const replica of replicas)
      await waitFor(async () => (await replica.get('/health')).body.total_packages === 5, 'the flip');
    const [one = [], other = []] = await Promise.all(replicas.map(askAll));
    for (const [i, { status, text }] of one.entries()) {
      expect([status, other[i]?.status, other[i]?.text]).to.deep.equal([200, 200, text]);
      expect(etagOf(one[i])).to.equal(etagOf(other[i]));
      expect(old.map(etagOf)).not.to.include(etagOf(one[i]));
      expect(text).not.to.equal(old[i % PATHS.length]?.text);
    }
    expect(seen.size).to.equal(2 * PATHS.length);
    for (const texts of seen.values()) expect(texts.size, 'one ETag, one response').to.equal(1);
  });
});
