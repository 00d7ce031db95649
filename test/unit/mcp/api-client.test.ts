import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { messageOf } from '../../../src/util/reason-text.js';
import { ApiClient } from '../../../src/mcp/api-client.js';
import { checkPackages } from '../../../src/mcp/check-packages.js';
import { SnapshotReader } from '../../../src/mcp/snapshot-reader.js';
import { listen } from '../../support/listen.js';

const STATS_HEADERS = { 'X-Snapshot': 'id' };
const STATS = {
  total_a_b_packages: 1,
  source: 'registry.example',
  taken_at: '2026-11-21T02:10:46.000Z',
};

/** Texts with an architecture, a release or a version, their status, and the name that is checked. */
const QUALIFIED: [given: string, status: string, checked?: string][] = [
  ['libc6:amd64', 'exists', 'libc6'],
  ['libc6:amd64=2.36-9', 'exists', 'libc6'],
  ['python3:any', 'exists', 'python3'],
  ['curl/bookworm-backports', 'exists', 'curl'],
  ['vendor/pkg', 'exists'],
  ['curll:amd64', 'missing'],
  ['LWP::UserAgent', 'exists'],
  ['LWP::UserAgnet', 'missing'],
  ['LWP::UserAgent@6.72', 'exists', 'LWP::UserAgent'],
  ['exact@2.0', 'exists', 'exact'],
  ['exact@1.0', 'exists'],
  ['lost@1', 'missing', 'lost'],
];

/** Responds to `/stats`; each test decides the rest. */
describe('The API client of the MCP server', () => {
  let respond: (response: ServerResponse) => void;
  let statsHeaders: Record<string, string>;
  let redirect: string | undefined;
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    const url = new URL(request.url ?? '', 'http://127.0.0.1');
    if (url.pathname !== '/base/stats') respond(response);
    else if (redirect !== undefined) response.writeHead(308, { Location: redirect }).end();
    else response.writeHead(200, statsHeaders).end(JSON.stringify(STATS));
  });
  let base: URL;
  let close: () => Promise<void>;
  before(async () => {
    const listening = await listen(server);
    base = new URL('/base/', listening.url);
    ({ close } = listening);
  });
  after(() => close());
  beforeEach(() => {
    asked.splice(0);
    statsHeaders = STATS_HEADERS;
    redirect = undefined;
  });

  const { signal } = new AbortController();
  const reader = (token?: string) => SnapshotReader.open(new ApiClient(base, token), signal);
  const json = (response: ServerResponse, body: unknown) => response.end(JSON.stringify(body));
  const failure = async () => {
    const error = await (await reader()).similar('a', 1).catch((error: unknown) => error);
    return (error as Error).message;
  };

  it('reads one snapshot below the path of the address, the most used packages first', async () => {
    respond = (response) => json(response, { results: [] });
    const snapshot = await reader('token');
    expect(snapshot.about).to.deep.include({ registry: 'a_b', taken_at: STATS.taken_at });
    await snapshot.search('a b', 5, 'prefix');
    expect(asked.at(-1)?.url).to.equal('/base/search?q=a+b&match=prefix&limit=5&sort=weight&snapshot=id');
    expect(asked.at(-1)?.headers['x-bypass-token']).to.equal('token');
  });

  it('works without the header that a proxy drops', async () => {
    respond = (response) => json(response, { results: [] });
    statsHeaders = {};
    const snapshot = await reader();
    expect(await snapshot.search('a', 5, 'contains')).to.deep.equal({ results: [], truncated: false });
    expect(asked.at(-1)?.url).to.equal('/base/search?q=a&match=contains&limit=5&sort=weight');
  });

  it('takes the package that has the name by the rule of the registry', async () => {
    const redis = { name: 'redis-py', version: '1', url: 'https://registry.example/redis-py' };
    const other = { ...redis, name: 'redispy', distance: 0 };
    respond = (response) => {
      const isLookup = asked.at(-1)?.url?.startsWith('/base/lookup') === true;
      json(response, { results: isLookup ? [{ name: 'Redis_Py', package: { no: 1, ...redis } }] : [other] });
    };
    expect(await checkPackages(await reader(), ['Redis_Py'], false)).to.deep.equal([
      { name: 'Redis_Py', status: 'exists', package: redis, look_alikes: undefined },
    ]);
  });

  it('cuts off a version, an architecture or a release if only the part before it is a package', async () => {
    const listed = [
      'libc6',
      'python3',
      'curl',
      'vendor/pkg',
      'vendor',
      'LWP::UserAgent',
      'LWP',
      'exact',
      'exact@1.0',
    ];
    respond = (response) => {
      const { searchParams } = new URL(asked.at(-1)?.url ?? '', base);
      const find = (name: string) => (listed.includes(name) ? { no: 1, name, version: '1', url: 'x' } : null);
      const isLookup = asked.at(-1)?.url?.startsWith('/base/lookup') === true;
      const given = isLookup ? searchParams.getAll('name') : [];
      json(response, { results: given.map((name) => ({ name, package: find(name) })) });
    };
    const names = QUALIFIED.map(([name]) => name);
    const checked = await checkPackages(await reader(), names, false);
    expect(checked.map(({ name, status, checked_name }) => [name, status, checked_name])).to.deep.equal(
      QUALIFIED.map(([given, status, name]) => [given, status, name]),
    );
  });

  it('names the address that a redirect leads to', async () => {
    for (const [location, message] of [
      [
        'https://registry.example/api/stats?',
        /base\/ redirects to https:\/\/registry\.example\/api\/: use that as --url$/,
      ],
      ['/stats', /redirects to http:\/\/127\.0\.0\.1:\d+\/: use that as --url$/],
      ['https://login.example/?next=stats', /does not respond like a package registry search: check --url$/],
    ] as const) {
      redirect = location;
      expect(await reader().catch(messageOf)).to.match(message);
    }
  });

  it('reads the time to wait in both forms of Retry-After, ten seconds without it', async () => {
    const later = new Date(Date.now() + 60_500).toUTCString();
    const cases: [status: number, headers: Record<string, string>, seconds: RegExp][] = [
      [429, { 'Retry-After': '42' }, / 42 seconds/],
      [503, { 'Retry-After': later }, / (59|60|61) seconds/],
      [503, { 'Retry-After': 'soon' }, / 10 seconds/],
      [502, {}, / 10 seconds/],
    ];
    for (const [status, headers, seconds] of cases) {
      respond = (response) => response.writeHead(status, headers).end('<html>');
      expect(await failure())
        .to.match(/^HTTP status \d+\. Try again in/)
        .and.match(seconds);
    }
  });

  it('gives up on a service that never responds, or stops responding, also after garbage collection', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const starts: ((response: ServerResponse) => void)[] = [
      () => undefined,
      (response) => response.writeHead(200, STATS_HEADERS).flushHeaders(),
      (response) => response.writeHead(200, STATS_HEADERS).write('{"results": ['),
    ];
    for (const start of starts) {
      respond = (response) => {
        start(response);
        for (const ms of [20, 80]) setTimeout(collectGarbage, ms);
      };
      const api = new ApiClient(base, undefined, fetch, 150);
      const error = await (await SnapshotReader.open(api, signal)).similar('a', 1).catch(messageOf);
      expect(error).to.match(/ cannot be reached \(timed out after 0\.15 s\)\. Try again in 10 seconds$/);
    }
  });

  it('follows no redirect, which could take the token to another host', async () => {
    respond = (response) => response.writeHead(301, { Location: '/base/stats' }).end();
    expect(await failure()).to.match(/does not respond like a package registry search: check --url$/);
    expect(asked).to.have.length(2);
  });
});
