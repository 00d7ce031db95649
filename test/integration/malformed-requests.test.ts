import { METHODS } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { UNCACHED } from '../support/background-reader.js';
import { packagesNamed } from '../support/datasets.js';
import { expectRawProblem } from '../support/expect-problem.js';
import { useProxiedService } from '../support/proxied-service.js';
import { getRequest, RawConnection, type RawResponse } from '../support/raw-connection.js';
import { waitFor } from '../support/wait-for.js';

const CLOSING = 'Connection: close\r\n';

// Timeouts: test/unit/http/server/http-server.test.ts.
describe('Unusual requests', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => packagesNamed(['alpha', 'beta']), UNCACHED);

  /** Sends bytes on a new connection. @returns all responses, once the service has closed it. */
  async function send(...pieces: (string | Buffer)[]): Promise<readonly RawResponse[]> {
    const client = await RawConnection.open(suite.service.url);
    for (const piece of pieces) client.send(piece);
    await client.closed;
    return client.responses;
  }

  async function sendOne(bytes: string | Buffer): Promise<RawResponse> {
    const [response, ...more] = await send(bytes);
    expect(more).to.deep.equal([]);
    if (response === undefined) throw new Error('there is no response');
    return response;
  }

  const statusesOf = (responses: readonly RawResponse[]) => responses.map(({ status }) => status);
  const line = (request: string, ...headers: string[]) => [request, ...headers, '', ''].join('\r\n');

  const big = 'x'.repeat(65_536);
  const faults: [what: string, bytes: string | Buffer, status?: number, code?: string][] = [
    ['garbage', 'nonsense\r\n\r\n'],
    ['TLS', Buffer.from([0x16, 0x03, 0x01, 0x00, 0xff])],
    ['the start of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an invalid version', line('GET /ping HTTP/2.0', 'Host: a')],
    ['no Host', line('GET /ping HTTP/1.1')],
    ['two Hosts', line('GET /ping HTTP/1.1', 'Host: a', 'Host: b')],
    ['a repeated Host', line('GET /ping HTTP/1.1', 'Host: a', 'X: y', 'hOsT: a')],
    [
      'two Hosts among 3,000 headers',
      line('GET /ping HTTP/1.1', 'Host: a', ...Array.from({ length: 3000 }, () => 'a:'), 'Host: b'),
    ],
    ['two Hosts in HTTP/1.0', line('GET /ping HTTP/1.0', 'Host: a', 'Host: b')],
    ['an invalid Host', line('GET /ping HTTP/1.1', 'Host: a b/')],
    ['a NUL in the target', getRequest('/search?q=\0a')],
    ['a NUL in a header', getRequest('/ping', 'X-A: \0\r\n')],
    ['two lengths', getRequest('/ping', 'Content-Length: 1\r\nContent-Length: 2\r\n')],
    ['a length and chunks', getRequest('/ping', 'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n')],
    ...['http://[/', 'http://', 'http:///ping', 'http://a:99999/ping', 'ftp://a/ping', '*', 'http://%/'].map(
      (target): [string, string] => [`the target ${target}`, getRequest(target)],
    ),
    ['the target https://[::1/', getRequest('https://[::1/')],
    ['a space in the target', getRequest('http://a b/')],
    ['a target without a slash', getRequest('ping')],
    ['another expectation without Host', line('GET / HTTP/1.1', 'Expect: x')],
    ['another expectation', getRequest('/ping', 'Expect: foo\r\n'), 417, 'expectation_failed'],
    ['a large header', getRequest('/ping', `X: ${big}\r\n`), 431, 'headers_too_large'],
    ['a large target', getRequest(`/search?q=${big}`), 431, 'headers_too_large'],
    ['many headers', getRequest('/ping', 'abcd: e\r\n'.repeat(4000)), 431, 'headers_too_large'],
    ['CONNECT', line('CONNECT a:443 HTTP/1.1', 'Host: a'), 405, 'method_not_allowed'],
    ['CONNECT without Host', line('CONNECT a:443 HTTP/1.1'), 405, 'method_not_allowed'],
    ['OPTIONS *', line('OPTIONS * HTTP/1.1', 'Host: a', 'Connection: close'), 404, 'not_found'],
  ];
  for (const [what, bytes, status = 400, code = 'malformed_request'] of faults) {
    it(`get ${status} ${code}: ${what}`, async () => {
      const response = await sendOne(bytes);
      expectRawProblem(response, status, code);
      expect(response.headers.get('Allow')).to.equal(status === 405 ? 'GET, HEAD' : null);
    });
  }

  it('are told to percent-encode their target', async () => {
    for (const target of [
      '/search?q=café',
      '/packages/日本',
      '/lookup?name=🚀',
      '/search?q=\u202E',
      'http://a/é',
      '/search?q=a b',
    ]) {
      const { text } = await sendOne(getRequest(target));
      expect(text, target).to.include('percent-encoded');
    }
  });

  it('are hidden from other origins on the endpoints with a secret', async () => {
    for (const path of ['/rebuild', '/get-bypass?secret=a', 'http://a/rebuild', '/rebuild#a']) {
      const response = await sendOne(getRequest(path, 'Expect: foo\r\n'));
      expect(response.status, path).to.equal(417);
      expect(response.headers.has('Access-Control-Allow-Origin'), path).to.equal(false);
    }
  });

  it('keep their request id', async () => {
    const response = await sendOne(line('GET / HTTP/1.1', 'X-Request-Id: mine'));
    expect(response.headers.get('X-Request-Id')).to.equal('mine');
  });

  it('get 405 with any method that the parser knows, and 400 with others', async () => {
    for (const method of ['PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'TRACE', 'M-SEARCH', 'QUERY', 'BREW']) {
      const response = await sendOne(
        line(`${method} /search?q=alpha HTTP/1.1`, 'Host: a', 'Connection: close'),
      );
      // Node's, which differ from version to version.
      const isKnown = METHODS.includes(method);
      if (isKnown) expectRawProblem(response, 405, 'method_not_allowed');
      else expectRawProblem(response, 400, 'malformed_request');
      expect(response.headers.get('Allow'), method).to.equal(isKnown ? 'GET, HEAD' : null);
    }
  });

  it('get normal responses if their target is a URL, or resembles one', async () => {
    const targets: [target: string, status: number][] = [
      ['http://registry.example/ping', 200],
      ['HTTPS://user@registry.example:8443/search?q=alpha', 200],
      ['http://[::1]:3000/search?q=alpha', 200],
      ['http://registry.example', 200],
      ['http://registry.example?q=alpha', 200],
      ['http://registry.example/packages/../ping', 404],
      ['//?#%', 404],
    ];
    for (const [target, status] of targets)
      expect((await sendOne(getRequest(target, CLOSING))).status, target).to.equal(status);
  });

  it('get normal responses in HTTP/1.0 without a Host, with an empty Host, or one with a port', async () => {
    expect((await sendOne(line('GET /ping HTTP/1.0'))).status).to.equal(200);
    for (const host of ['', '[::1]:3000', 'registry.example:80', 'xn--bcher-kva.example', 'a_b']) {
      const response = await sendOne(line('GET /ping HTTP/1.1', `Host: ${host}`, 'Connection: close'));
      expect(response.status, host).to.equal(200);
    }
  });

  it('get normal responses with Expect: 100-continue', async () => {
    const post = ['POST /ping HTTP/1.1', 'Host: a', 'Expect: 100-Continue', 'Content-Length: 2'] as const;
    expect(statusesOf(await send(line(...post, 'Connection: close')))).to.deep.equal([100, 405]);
    const get = getRequest('/openapi.json', 'Expect: 100-continue\r\n' + CLOSING);
    expect(statusesOf(await send(get))).to.deep.equal([100, 200]);
  });

  it('get the last response of their connection to Expect: 100-continue behind another request', async () => {
    const responses = await send(
      getRequest('/search?q=not-cached') + getRequest('/openapi.json', 'Expect: 100-continue\r\n'),
    );
    expect(statusesOf(responses)).to.deep.equal([200, 200]);
    expect(responses.map(({ headers }) => headers.get('Connection'))).to.deep.equal(['keep-alive', 'close']);
    for (const { text } of responses) expect(JSON.parse(text)).to.be.an('object');
  });

  it('get normal responses if they request another protocol, like those after them', async () => {
    const upgrade = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n';
    const websocket = ['Connection: close, Upgrade', 'Upgrade: websocket', 'Content-Length: 2'];
    const client = await RawConnection.open(suite.service.url);
    // Node ignores what comes with a request for another protocol.
    for (const bytes of [
      getRequest('/ping', upgrade),
      getRequest('/nothing') + getRequest('/ping'),
      `${line('POST /ping HTTP/1.1', 'Host: a', ...websocket)}ab`,
    ]) {
      const before = client.responses.length;
      client.send(bytes);
      await waitFor(() => client.responses.length > before, 'a response');
      await pause(20);
    }
    await client.closed;
    expect(statusesOf(client.responses)).to.deep.equal([200, 404, 200, 405]);
  });

  it('never get a response in another format, whatever their target is', async () => {
    const characters = '/?#[]@:%*.\\|^`{}<>"\'~;=&+, \t\u00a0éa1'.split('');
    const random = seededRandom(7);
    const target = () =>
      pick(random, ['/', 'http://', 'http://a', '//', '']) +
      Array.from({ length: integer(random, 1, 8) }, () => pick(random, characters)).join('');
    for (let i = 0; i < 20; i++) {
      const all = Array.from({ length: 25 }, (_, j) =>
        Buffer.from(getRequest(target(), CLOSING), j % 2 === 0 ? 'latin1' : 'utf8'),
      );
      for (const { status, headers, text } of await Promise.all(all.map(sendOne))) {
        expect(status, text).to.be.oneOf([200, 400, 404]);
        if (status !== 200) expect(headers.get('Content-Type'), text).to.equal('application/problem+json');
        expect(headers.get('X-Request-Id')).to.match(/^[\w.:-]{1,64}$/);
      }
    }
  });

  describe('after valid requests', () => {
    const search = getRequest('/search?q=alpha');

    /** Sends bytes, delays the search among them, and waits until the service closes the connection. */
    async function sendHeld(bytes: string, ...more: string[]): Promise<RawConnection> {
      const hold = bytes.includes('/search')
        ? suite.proxy.hold('before', (_method, path) => path.includes('_msearch'))
        : undefined;
      const client = await RawConnection.open(suite.service.url);
      client.send(bytes);
      await hold?.arrived;
      for (const piece of more) {
        await pause(20);
        client.send(piece);
      }
      await pause(50);
      hold?.release();
      await client.closed;
      expect(client.error).to.equal(undefined);
      return client;
    }

    const late: [what: string, bytes: string, status: number][] = [
      ['garbage', 'nonsense\r\n\r\n', 400],
      ['a request without Host', line('GET /ping HTTP/1.1'), 400],
      ['a target that is not a URL', getRequest('http://['), 400],
      ['another expectation', getRequest('/ping', 'Expect: foo\r\n'), 417],
      ['CONNECT', line('CONNECT a:1 HTTP/1.1', 'Host: a'), 405],
      ['large headers', getRequest('/ping', `X: ${'x'.repeat(100_000)}\r\n`), 431],
      ['a body without an end', getRequest('/ping', 'Transfer-Encoding: gzip\r\n'), 400],
    ];
    for (const [what, fault, status] of late) {
      it(`get ${status} after the previous responses, and later input is ignored: ${what}`, async () => {
        for (const client of [await sendHeld(search + fault), await sendHeld(search, fault)]) {
          expect(statusesOf(client.responses)).to.deep.equal([200, status]);
          expect(JSON.parse(client.responses[0]?.text ?? '')).to.include({ query: 'alpha' });
        }
        const pings = getRequest('/ping').repeat(30);
        const { responses } = await sendHeld(pings + search + fault + pings);
        expect(statusesOf(responses)).to.deep.equal([...Array.from({ length: 31 }, () => 200), status]);
      });
    }

    it('get no response if the previous one was the last', async () => {
      for (const last of [getRequest('/search?q=alpha', CLOSING), line('GET /search?q=alpha HTTP/1.0')])
        for (const fault of ['nonsense\r\n\r\n', search])
          expect(statusesOf((await sendHeld(last + fault)).responses)).to.deep.equal([200]);
    });

    it('get no second response if they are the body of an answered request', async () => {
      const post = line('POST /ping HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked');
      for (const pieces of [[`${post}zz\r\n`], [post, 'zz\r\n'], [`${search}${post}zz\r\n`]] as const) {
        const { responses } = await sendHeld(...(pieces as [string]));
        expect(statusesOf(responses)).to.deep.equal(pieces[0].startsWith(search) ? [200, 405] : [405]);
      }
    });
  });

  it('get their response even if the client is still sending', async () => {
    const size = 20_000_000;
    const client = await RawConnection.open(suite.service.url);
    client.send(`POST / HTTP/1.1\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`);
    await client.closed;
    expect(statusesOf(client.responses)).to.deep.equal([400]);
    expect(client.error).to.equal(undefined);
  });
});
