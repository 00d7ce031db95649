import { request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { datasetServer, heldBack } from '../support/dataset-server.js';
import { expectProblem } from '../support/expect-problem.js';
import { useReplicaStarter } from '../support/replica-starter.js';
import { newSlug, startService, useService, type Service, type TestResponse } from '../support/service.js';
import { callOf, structsOf } from '../support/xml-rpc.js';

const VERSIONS = ['latest', '1:1.2-4', '4.2.0rc1', '2.0.0'];

/** Packages of which 610 contain "lib", and 10 of these also "python". */
const PACKAGES = packagesNamed([
  ...Array.from({ length: 600 }, (_, i) => `lib-${i}`),
  ...Array.from({ length: 10 }, (_, i) => `lib-a&b-python${i}`),
  'redis',
]).map((entry, i) => ({ ...entry, version: VERSIONS[i % 4] ?? '', weight: (i * 7919) % 1000 }));

const SEARCHES = {
  npm: { path: '/-/v1/search', text: 'text', limit: 'size', max: 250, usual: 20 },
  cargo: { path: '/api/v1/crates', text: 'q', limit: 'per_page', max: 100, usual: 10 },
  composer: { path: '/search.json', text: 'q', limit: 'per_page', max: 100, usual: 15 },
} as const;

type Client = keyof typeof SEARCHES;
const CLIENTS = Object.keys(SEARCHES) as Client[];

function pathOf(client: Client, typed: string, more = ''): string {
  const { path, text } = SEARCHES[client];
  return `${path}?${text}=${encodeURIComponent(typed)}${more}`;
}

/** The names in a response. */
function namesIn({ body }: TestResponse): string[] {
  if (typeof body === 'string') return structsOf(body).map(({ name = '' }) => name);
  const found = (body.objects ?? body.crates ?? body.results) as {
    name: string;
    package?: { name: string };
  }[];
  return found.map((entry) => entry.package?.name ?? entry.name);
}

/** The text that the client prints. */
function errorIn({ body }: TestResponse): string {
  if (typeof body === 'string') return structsOf(body)[0]?.faultString ?? '';
  return (body.error ?? body.warning ?? body.errors[0].detail) as string;
}

describe('Searches of package managers', function () {
  this.timeout(60_000);
  const suite = useService(() => PACKAGES);
  const startReplica = useReplicaStarter(suite);
  const get = (path: string, init?: RequestInit) => suite.service.get(path, init);
  const search = (client: Client, typed: string, more = '') => get(pathOf(client, typed, more));
  const post = (body: string | Buffer, service: Service = suite.service) =>
    service.get('/pypi', { method: 'POST', body, headers: { 'Content-Type': 'text/xml' } });
  const pip = (names: readonly string[], service?: Service) =>
    post(callOf('search', { name: names, summary: names }, 'or'), service);
  /** The names that `/search` finds. */
  const expected = async (q: string, limit: number, match = 'words') => {
    const { body } = await get(
      `/search?match=${match}&sort=weight&limit=${limit}&q=${encodeURIComponent(q)}`,
    );
    return (body.results as { name: string }[]).map(({ name }) => name);
  };

  for (const [typed, q, match] of [
    ['lib', 'lib', 'contains'],
    ['python LIB', 'python lib', 'words'],
    ['  lib\tp python ', 'lib python', 'words'],
    ['b lib', 'lib', 'contains'],
    ['li ib lib b- py yt th ho missing', 'li ib lib b- py yt th ho', 'words'],
    ['redis lib', 'redis lib', 'words'],
  ] as const) {
    it(`find for "${typed}" what /search finds by weight for "${q}"`, async () => {
      for (const client of CLIENTS) {
        const { usual } = SEARCHES[client];
        expect(namesIn(await search(client, typed)), client).to.deep.equal(await expected(q, usual, match));
      }
      const { body: xml } = await pip(typed.split(' '));
      expect(structsOf(xml as string).map(({ name }) => name)).to.deep.equal(await expected(q, 100, match));
    });
  }

  it('return nothing if no word is long enough', async () => {
    expect((await search('npm', 'a b')).body).to.deep.include({ objects: [], total: 0 });
    expect((await search('npm', '')).body).to.deep.include({ objects: [], total: 0 });
    expect((await search('cargo', 'a')).body).to.deep.equal({ crates: [], meta: { total: 0 } });
    expect((await search('composer', '.')).body).to.deep.equal({ results: [], total: 0 });
    expect(structsOf((await pip([])).text)).to.deep.equal([]);
    expect(structsOf((await pip(['a', 'b'])).text)).to.deep.equal([]);
  });

  it('return entries in the form of npm', async () => {
    const { body, headers } = await search('npm', 'redis');
    const { version, url } = PACKAGES.at(-1) ?? {};
    const entry = { name: 'redis', version, keywords: [], maintainers: [], links: { npm: url } };
    expect(body).to.have.all.keys('objects', 'total', 'time');
    expect(body).to.deep.include({ objects: [{ package: entry }], total: 1 });
    const note = (await get('/stats')).body.note as string;
    expect(note).to.contain(`taken at ${body.time}`);
    expect(headers.get('Content-Type')).to.equal('application/json; charset=utf-8');
  });

  it('return entries in the form of Cargo, which joins words by a plus sign', async () => {
    const { version } = PACKAGES.at(-1) ?? {};
    const crates = [{ name: 'redis', max_version: version }];
    expect((await search('cargo', 'redis')).body).to.deep.equal({ crates, meta: { total: 1 } });
    expect(namesIn(await search('cargo', 'python+lib'))).to.deep.equal(await expected('python lib', 10));
  });

  it('return entries in the form of Composer', async () => {
    const { url } = PACKAGES.at(-1) ?? {};
    const results = [{ name: 'redis', url }];
    expect((await search('composer', 'redis')).body).to.deep.equal({ results, total: 1 });
  });

  it('return entries in the form of pip, with versions that it accepts', async () => {
    const answer = await pip(['a&amp;b', 'pyth&#111;n']);
    expect(answer.headers.get('Content-Type')).to.equal('text/xml; charset=utf-8');
    const versions = new Map(PACKAGES.map(({ name, version }) => [name, version]));
    const sent: Record<string, string> = { latest: '0+latest', '1:1.2-4': '0+1.1.2.4' };
    const structs = structsOf(answer.text);
    expect(structs).to.have.length(10);
    for (const { name = '', version, summary } of structs) {
      const listed = versions.get(name) ?? '';
      expect({ version, summary }).to.deep.equal({ version: sent[listed] ?? listed, summary: '' });
    }
  });

  it('ignore qualifiers of npm', async () => {
    const typed = 'author:jane python keywords:redis not:unstable lib is:x';
    expect(namesIn(await search('npm', typed))).to.deep.equal(await expected('python lib', 20));
    expect((await search('npm', 'maintainer:redis')).body).to.deep.include({ objects: [], total: 0 });
  });

  it('return pages that together are the first 500 results', async () => {
    const all = await expected('lib', 500, 'contains');
    for (const client of CLIENTS) {
      const { limit } = SEARCHES[client];
      const pages: string[][] = [];
      for (let page = 1; page <= 8; page++) {
        const position = client === 'npm' ? `&from=${(page - 1) * 70}` : `&page=${page}`;
        const answer = await search(client, 'lib', `&${limit}=70${position}`);
        expect(answer.body.total ?? answer.body.meta.total, client).to.equal(610);
        pages.push(namesIn(answer));
      }
      expect(pages.flat(), client).to.deep.equal(all);
    }
  });

  it('name the next page to Composer until the 500th result', async () => {
    const names: string[] = [];
    const followed: string[] = [];
    for (let next: string | undefined = '?q=lib%20&per_page=100'; next !== undefined;) {
      const answer = await get(`/search.json${next}`);
      names.push(...namesIn(answer));
      ({ next } = answer.body as { next?: string });
      if (next !== undefined) followed.push(next);
    }
    expect(followed).to.deep.equal([2, 3, 4, 5].map((page) => `?q=lib%20&per_page=100&page=${page}`));
    expect(names).to.deep.equal(await expected('lib', 500, 'contains'));
  });

  it('reduce a size above the maximum', async () => {
    for (const client of CLIENTS) {
      const { limit, max } = SEARCHES[client];
      expect(namesIn(await search(client, 'lib', `&${limit}=501`)), client).to.have.length(max);
    }
    expect(structsOf((await pip(['lib'])).text)).to.have.length(100);
  });

  it('explain invalid parameters in the form that the client prints', async () => {
    for (const client of CLIENTS) {
      const { path, text, limit } = SEARCHES[client];
      const long = `${path}?${text}=${'x'.repeat(101)}`;
      const position = client === 'npm' ? 'from' : 'page';
      for (const [invalid, detail] of [
        [path, `${text} is required`],
        [long, `${text} must have at most 100 characters`],
        [`${path}?${text}=a&${text}=b`, `${text} must be given once`],
        [`${path}?${text}=lib&${limit}=0`, `${limit} must be a whole number from 1 in plain decimal digits`],
        [`${path}?${text}=lib&${position}=-1`, `${position} must be a whole number`],
      ] as const) {
        const answer = await get(invalid);
        expect(answer.status, invalid).to.equal(400);
        expect(answer.headers.get('Content-Type')).to.equal('application/json');
        expect(errorIn(answer)).to.match(new RegExp(`^${detail}`));
      }
    }
  });

  it('are cached and tagged', async () => {
    const id = await suite.service.snapshot();
    for (const client of CLIENTS) {
      const { headers } = await search(client, 'redis');
      expect(headers.get('X-Snapshot')).to.equal(id);
      expect(headers.get('Cache-Control')).to.match(/^public, max-age=30/);
      const condition = { headers: { 'If-None-Match': headers.get('ETag') ?? '' } };
      expect((await get(pathOf(client, 'redis'), condition)).status, client).to.equal(304);
      expect((await get(pathOf(client, 'lib'), condition)).status, client).to.equal(200);
      expect((await get(pathOf(client, 'redis'), { method: 'HEAD' })).status).to.equal(200);
    }
  });

  it('are limited, with a text that the client prints', async () => {
    const replica = await startReplica({ RATE_LIMIT_POINTS: '1' });
    expect((await replica.get('/stats')).status).to.equal(200);
    for (const client of CLIENTS) {
      const answer = await replica.get(pathOf(client, 'redis'));
      expect(answer.status, client).to.equal(429);
      expect(answer.headers.has('Retry-After')).to.equal(true);
      expect(errorIn(answer)).to.match(
        /^this request costs 1 point, fewer were left, and the limit resets at 2/,
      );
    }
    const answer = await pip(['redis'], replica);
    expect(answer.status).to.equal(200);
    expect(structsOf(answer.text)[0]).to.include({ faultCode: '429' });
    expect(errorIn(answer)).to.match(/^this request costs 1 point/);
  });

  it('explain that the first snapshot is being loaded', async () => {
    const held = heldBack(() => 'name\n');
    const origin = await datasetServer(held.listener);
    const service = await startService({ DATASET_URL: origin.url }, newSlug());
    try {
      for (const client of CLIENTS) {
        const answer = await service.get(pathOf(client, 'redis'));
        expect(answer.status, client).to.equal(503);
        expect(answer.headers.get('Retry-After')).to.equal('2');
        expect(errorIn(answer)).to.equal('the first snapshot is still being loaded');
      }
      const [fault] = structsOf((await pip(['redis'], service)).text);
      expect(fault).to.deep.equal({
        faultCode: '503',
        faultString: 'the first snapshot is still being loaded',
      });
    } finally {
      held.release();
      await service.end();
      await origin.close();
    }
  });

  it('have documents with absolute addresses', async () => {
    const forwarded = { headers: { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'search.example' } };
    for (const [base, env] of [
      ['', {}],
      ['https://search.example', { TRUSTED_PROXIES: '127.0.0.1' }],
      ['https://public.example/cargo', { PUBLIC_URL: 'https://public.example/cargo/' }],
    ] as const) {
      const replica = await startReplica({ RATE_LIMIT_POINTS: '1', ...env });
      const url = base === '' ? replica.url : base;
      const config = await replica.get('/config.json', forwarded);
      expect(config.body).to.deep.equal({ dl: `${url}/api/v1/crates`, api: url });
      const { body, headers } = await replica.get('/packages.json', forwarded);
      expect(body).to.deep.equal({ packages: [], search: `${url}/search.json?q=%query%` });
      for (const given of [headers, config.headers]) expect(given.get('Cache-Control')).to.equal('no-cache');
    }
  });

  describe('of pip', () => {
    const expectFault = async (body: string | Buffer, message: RegExp) => {
      const answer = await post(body);
      expect(answer.status).to.equal(200);
      expect(structsOf(answer.text)[0]).to.include({ faultCode: '400' });
      expect(errorIn(answer)).to.match(message);
    };

    it('take a POST only, without a tag', async () => {
      for (const method of ['GET', 'HEAD', 'PUT', 'OPTIONS']) {
        const headers = { Origin: 'https://other.example', 'Access-Control-Request-Method': 'POST' };
        const answer = await get('/pypi', { method, headers });
        expect(answer.headers.get('Allow'), method).to.equal('POST');
        expect(answer.headers.has('Access-Control-Allow-Origin'), method).to.equal(false);
        if (method !== 'HEAD') expectProblem(answer, 405, 'method_not_allowed');
      }
      const { headers } = await pip(['redis']);
      expect(headers.has('ETag')).to.equal(false);
      expect(headers.get('Cache-Control')).to.equal('no-store');
      expect(headers.has('Access-Control-Allow-Origin')).to.equal(false);
    });

    it('take values without a type, CDATA, and a name that is no array', async () => {
      const call = callOf('search', { name: 'WORD' }).replaceAll(/<\/?string>/g, '');
      for (const word of ['redis', '<![CDATA[redis]]>', 'red&#x69;s', '<!-- a comment -->redis'])
        expect(namesIn(await post(call.replace('WORD', word))), word).to.deep.equal(['redis']);
      expect(namesIn(await post(`\uFEFF${call.replace('WORD', 'redis')}`))).to.deep.equal(['redis']);
    });

    for (const [what, body, message] of [
      ['another method', callOf('package_releases', 'redis'), /must be of the method search$/],
      ['no names', callOf('search', { summary: ['redis'] }), /name is required$/],
      ['no call', '', /does not end with <\/methodCall>$/],
      ['JSON', '{"name": "redis"}', /does not end with <\/methodCall>$/],
      ['a call that is cut off', callOf('search', { name: ['redis'] }).slice(0, -20), /does not end with/],
      [
        'more than 100 characters',
        callOf('search', { name: ['x'.repeat(50), 'y'.repeat(50)] }),
        /at most 100/,
      ],
      ['a document type', `<!DOCTYPE a [<!ENTITY b "c">]>${callOf('search')}`, /has a document type$/],
      [
        'nested arrays',
        callOf('search', { name: ['<array><data><value>redis</value></data></array>'] }),
        /nests/,
      ],
      ['deep nesting', '<a>'.repeat(20_000), /nests more than 11 elements$/],
      [
        'bytes that are not UTF-8',
        Buffer.from(callOf('search', { name: ['caf\xe9'] }), 'latin1'),
        /is not UTF-8$/,
      ],
      ['65,537 bytes', callOf('search').padEnd(65_537), /has more than 65536 bytes$/],
      ['two megabytes', Buffer.alloc(2 ** 21, 0x20), /has more than 65536 bytes$/],
    ] as const)
      it(`answer ${what} with a fault`, () => expectFault(body, message));

    it('take 65,536 bytes', async () => {
      expect(namesIn(await post(callOf('search', { name: ['redis'] }).padEnd(65_536)))).to.deep.equal([
        'redis',
      ]);
    });

    it('know no entities but those of XML', async () => {
      for (const entity of ['&nbsp;', '&b;', '&#0;', '&#x110000;'])
        expect(namesIn(await pip([`redis${entity}`])), entity).to.deep.equal([]);
    });

    it('read a body in chunks', async () => {
      const sent = httpRequest(`${suite.service.url}/pypi`, { method: 'POST' });
      const answered = new Promise<string>((resolve, reject) => {
        sent.once('response', (response) => void text(response).then(resolve, reject));
        sent.once('error', reject);
      });
      for (const chunk of callOf('search', { name: ['redis'] }).match(/.{1,7}/gs) ?? []) sent.write(chunk);
      sent.end();
      expect(structsOf(await answered).map(({ name }) => name)).to.deep.equal(['redis']);
    });
  });
});
