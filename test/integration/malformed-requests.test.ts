import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { concurrentTests } from '../support/concurrent-tests.js';
import { packagesNamed } from '../support/datasets.js';
import { useProxiedService } from '../support/proxied-service.js';
import { getRequest, RawConnection, type RawResponse } from '../support/raw-connection.js';
import { rawRequest } from '../support/raw-request.js';
import { integer, pick, seededRandom } from '../../fixtures/random.js';
import { UNCACHED } from '../support/background-reader.js';
import { useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const NAMES = ['alpha', '__proto__', 'constructor', 'a%b', 'a\\b', 'a*b', 'été', '🚀🚀'];

/** Asserts that a response is a problem in the service's format. */
function expectRawProblem({ status, headers, text }: RawResponse, expected: number, code: string): void {
  expect(status, text).to.equal(expected);
  expect(headers.get('Content-Type')).to.equal('application/problem+json');
  const problem = JSON.parse(text) as Record<string, unknown>;
  expect(problem).to.have.all.keys('type', 'title', 'status', 'detail', 'code');
  expect(problem).to.include({ type: 'about:blank', status, code });
  expect(headers.get('Cache-Control')).to.equal('no-store');
  expect(headers.get('X-Request-Id')).to.match(/^[\w.:-]{1,64}$/);
  expect(headers.get('X-Content-Type-Options')).to.equal('nosniff');
  expect(headers.get('Content-Security-Policy')).to.match(/^default-src 'none'/);
  expect(headers.get('Strict-Transport-Security')).to.match(/^max-age=/);
  expect(headers.get('Date')).to.match(/GMT$/);
  expect(headers.get('Connection')).to.equal('close');
}

describe('Unusual requests', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['alpha', 'beta']));

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

  describe('whose target is not a path', () => {
    const targets = ['http://[/', 'http://', 'http:///ping', 'http://a:99999/ping', 'ftp://a/ping'];
    for (const target of [...targets, '*', 'http://%/', 'https://[::1/']) {
      it(`get 400: ${target}`, async () => {
        expectRawProblem(await sendOne(getRequest(target)), 400, 'malformed_request');
      });
    }

    it('get normal responses if it is a URL', async () => {
      const targets: [target: string, status: number][] = [
        ['http://registry.example/ping', 200],
        ['HTTPS://user@registry.example:8443/search?q=alpha', 200],
        ['http://[::1]:3000/search?q=alpha', 200],
        ['http://registry.example', 200],
        ['http://registry.example?q=alpha', 200],
        ['http://registry.example/packages/../ping', 404],
      ];
      for (const [target, status] of targets) {
        const response = await sendOne(getRequest(target, 'Connection: close\r\n'));
        expect(response.status, target).to.equal(status);
      }
    });

    it('get a problem for OPTIONS *', async () => {
      const response = await sendOne('OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      expectRawProblem(response, 404, 'not_found');
    });
  });

  describe('with another fault', () => {
    const big = 'x'.repeat(20_000);
    const cases: [what: string, bytes: string | Buffer, status: number, code: string][] = [
      ['no Host', 'GET /ping HTTP/1.1\r\n\r\n', 400, 'malformed_request'],
      ['two Hosts', 'GET /ping HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400, 'malformed_request'],
      [
        'a repeated Host',
        'GET /ping HTTP/1.1\r\nHost: a\r\nX: y\r\nhOsT: a\r\n\r\n',
        400,
        'malformed_request',
      ],
      [
        'two Hosts among 3,000 headers',
        `GET /ping HTTP/1.1\r\nHost: a\r\n${'a:\r\n'.repeat(3000)}Host: b\r\n\r\n`,
        400,
        'malformed_request',
      ],
      ['two Hosts in HTTP/1.0', 'GET /ping HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n', 400, 'malformed_request'],
      ['an invalid Host', 'GET /ping HTTP/1.1\r\nHost: a b/\r\n\r\n', 400, 'malformed_request'],
      ['an invalid version', 'GET /ping HTTP/2.0\r\nHost: a\r\n\r\n', 400, 'malformed_request'],
      ['the start of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'malformed_request'],
      ['a space in the target', getRequest('http://a b/'), 400, 'malformed_request'],
      ['a target without a slash', getRequest('ping'), 400, 'malformed_request'],
      ['TLS', Buffer.from([0x16, 0x03, 0x01, 0x00, 0xff]), 400, 'malformed_request'],
      ['another expectation', getRequest('/ping', 'Expect: foo\r\n'), 417, 'expectation_failed'],
      ['another expectation without Host', 'GET / HTTP/1.1\r\nExpect: x\r\n\r\n', 400, 'malformed_request'],
      ['a large header', getRequest('/ping', `X: ${big}\r\n`), 431, 'headers_too_large'],
      ['a large target', getRequest(`/search?q=${big}`), 431, 'headers_too_large'],
      ['many headers', getRequest('/ping', 'abcd: e\r\n'.repeat(4000)), 431, 'headers_too_large'],
      ['CONNECT', 'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n', 405, 'method_not_allowed'],
      ['CONNECT without Host', 'CONNECT a:443 HTTP/1.1\r\n\r\n', 405, 'method_not_allowed'],
    ];
    for (const [what, bytes, status, code] of cases) {
      it(`get ${status} ${code}: ${what}`, async () => {
        const response = await sendOne(bytes);
        expectRawProblem(response, status, code);
        expect(response.headers.get('Allow')).to.equal(status === 405 ? 'GET, HEAD' : null);
      });
    }

    it('keep their request id', async () => {
      const response = await sendOne('GET / HTTP/1.1\r\nX-Request-Id: mine\r\n\r\n');
      expect(response.headers.get('X-Request-Id')).to.equal('mine');
    });

    concurrentTests()('get 408 request_timeout if they do not arrive completely', async () => {
      const [half, second] = await Promise.all([
        sendOne('GET /ping HTTP/1.1\r\nHost: a\r\n'),
        send(`${getRequest('/ping')}GET /ping HTTP/1.1\r\n`),
      ]);
      expectRawProblem(half, 408, 'request_timeout');
      expect(second.map(({ status }) => status)).to.deep.equal([200, 408]);
    });
  });

  describe('that are valid', () => {
    const closing = 'Connection: close\r\n';

    it('are answered in HTTP/1.0 without a Host', async () => {
      expect((await sendOne('GET /ping HTTP/1.0\r\n\r\n')).status).to.equal(200);
    });

    it('are answered with an empty Host, or one with a port', async () => {
      for (const host of ['', '[::1]:3000', 'registry.example:80', 'xn--bcher-kva.example', 'a_b']) {
        const response = await sendOne(`GET /ping HTTP/1.1\r\nHost: ${host}\r\n${closing}\r\n`);
        expect(response.status, host).to.equal(200);
      }
    });

    it('are answered with Expect: 100-continue in any spelling, without being asked for their body', async () => {
      const responses = await send(
        `POST /ping HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n${closing}\r\n`,
      );
      expect(responses.map(({ status }) => status)).to.deep.equal([405]);
    });

    it('are answered with Expect: 100-continue among others, none of them broken by a 100', async () => {
      const responses = await send(
        getRequest('/ping') +
          getRequest('/openapi.json', 'Expect: 100-continue\r\n') +
          getRequest('/search?q=alpha', 'Expect: 100-continue\r\n') +
          getRequest('/ping', closing),
      );
      expect(responses.map(({ status }) => status)).to.deep.equal([200, 100, 200, 100, 200, 200]);
      for (const { text } of [responses[2], responses[4]] as RawResponse[])
        expect(JSON.parse(text)).to.be.an('object');
    });

    it('are answered if they request another protocol, like those after them', async () => {
      const upgrade = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n';
      const websocket = 'Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n';
      const responses = await send(
        getRequest('/ping', upgrade) +
          getRequest('/nothing') +
          getRequest('/ping') +
          `POST /ping HTTP/1.1\r\nHost: a\r\n${websocket}\r\nab`,
      );
      expect(responses.map(({ status }) => status)).to.deep.equal([200, 404, 200, 405]);
    });

    it('are answered with 405 for any other method', async () => {
      for (const method of ['SOURCE', 'LINK', 'PURGE', 'M-SEARCH', 'QUERY']) {
        const { status, headers } = await sendOne(`${method} /ping HTTP/1.1\r\nHost: a\r\n${closing}\r\n`);
        if (status === 400) continue; // The parser of this version of Node does not know it.
        expect(status, method).to.equal(405);
        expect(headers.get('Allow')).to.equal('GET, HEAD');
      }
    });
  });

  it('never get a response in another format, whatever their target is', async () => {
    const characters = '/?#[]@:%*.\\|^`{}<>"\'~;=&+, \t\u00a0éa1'.split('');
    const random = seededRandom(7);
    const target = () =>
      pick(random, ['/', 'http://', 'http://a', '//', '']) +
      Array.from({ length: integer(random, 1, 8) }, () => pick(random, characters)).join('');
    for (let i = 0; i < 40; i++) {
      const responses = await Promise.all(
        Array.from({ length: 25 }, async (_, j) => {
          const bytes = Buffer.from(
            getRequest(target(), 'Connection: close\r\n'),
            j % 2 === 0 ? 'latin1' : 'utf8',
          );
          return { bytes, responses: await send(bytes) };
        }),
      );
      for (const { bytes, responses: found } of responses) {
        expect(found, bytes.toString('latin1')).to.have.length(1);
        const [{ status, headers, text }] = found as [RawResponse];
        expect(status, bytes.toString('latin1')).to.be.oneOf([200, 400, 404]);
        if (status !== 200) expect(headers.get('Content-Type'), text).to.equal('application/problem+json');
        expect(headers.get('X-Request-Id')).to.match(/^[\w.:-]{1,64}$/);
      }
    }
  });
});

describe('Malformed input after valid requests', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => packagesNamed(['alpha', 'beta']), UNCACHED);

  /** Sends bytes, delays the search among them, and waits until the service closes the connection. */
  async function send(bytes: string, ...more: string[]): Promise<RawConnection> {
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
    await pause(200);
    hold?.release();
    await client.closed;
    return client;
  }

  const itConcurrently = concurrentTests();
  const search = getRequest('/search?q=alpha');
  const statusesOf = (client: RawConnection) => client.responses.map(({ status }) => status);

  const faults: [what: string, bytes: string, status: number][] = [
    ['garbage', 'nonsense\r\n\r\n', 400],
    ['a request without Host', 'GET /ping HTTP/1.1\r\n\r\n', 400],
    ['a target that is not a URL', getRequest('http://['), 400],
    ['another expectation', getRequest('/ping', 'Expect: foo\r\n'), 417],
    ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 405],
    ['large headers', getRequest('/ping', `X: ${'x'.repeat(100_000)}\r\n`), 431],
    ['a body without an end', getRequest('/ping', 'Transfer-Encoding: gzip\r\n'), 400],
  ];
  for (const [what, fault, status] of faults) {
    it(`gets ${status} after the response to the previous request: ${what}`, async () => {
      for (const client of [await send(search + fault), await send(search, fault)]) {
        expect(statusesOf(client)).to.deep.equal([200, status]);
        expect(JSON.parse(client.responses[0]?.text ?? '')).to.include({ query: 'alpha' });
        expect(client.error).to.equal(undefined);
      }
    });

    it(`gets its response in order after many requests, and later input is ignored: ${what}`, async () => {
      const client = await send(
        getRequest('/ping').repeat(30) + search + fault + getRequest('/ping').repeat(30),
      );
      expect(statusesOf(client)).to.deep.equal([...Array.from({ length: 31 }, () => 200), status]);
    });
  }

  it('gets no response if the previous one was the last', async () => {
    for (const last of [
      getRequest('/search?q=alpha', 'Connection: close\r\n'),
      'GET /search?q=alpha HTTP/1.0\r\n\r\n',
    ]) {
      for (const fault of ['nonsense\r\n\r\n', search]) {
        const client = await send(last + fault);
        expect(statusesOf(client)).to.deep.equal([200]);
        expect(client.error).to.equal(undefined);
      }
    }
  });

  it('gets no second response if it is the body of an answered request', async () => {
    const post = 'POST /ping HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
    for (const client of [
      await send(`${post}zz\r\n`),
      await send(post, 'zz\r\n'),
      await send(`${search}${post}zz\r\n`),
    ]) {
      expect(statusesOf(client).filter((status) => status !== 200)).to.deep.equal([405]);
    }
  });

  it('gets no second response if it is an incomplete body', async () => {
    const client = await send('POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1');
    expect(statusesOf(client)).to.deep.equal([405]);
  });

  itConcurrently('gets no second response if it is completed too late', async () => {
    const client = await RawConnection.open(suite.service.url);
    client.send('GET /ping HTTP/1.1\r\n');
    await waitFor(() => client.responses.length > 0, 'the request timeout', 20_000);
    client.send('Host: a\r\n\r\n');
    client.send(getRequest('/ping').repeat(5));
    await client.closed;
    expect(statusesOf(client)).to.deep.equal([408]);
  });

  it('gets its response even if the client is still sending', async () => {
    const client = await RawConnection.open(suite.service.url);
    const size = 20_000_000;
    client.send(`POST / HTTP/1.1\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`);
    await client.closed;
    expect(statusesOf(client)).to.deep.equal([400]);
    expect(client.error).to.equal(undefined);
  });

  itConcurrently('causes the connection to be closed even if the client does not close it', async () => {
    const client = await RawConnection.openUnread(suite.service.url);
    client.send('nonsense\r\n\r\n');
    await pause(100);
    const began = performance.now();
    for (;;) {
      // Fails as soon as the connection is reset.
      client.send('x');
      if (client.error !== undefined) break;
      await pause(100);
    }
    expect(performance.now() - began).to.be.lessThan(10_000);
  });
});

describe('Malformed requests', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(NAMES));
  const get = (path: string, init?: RequestInit) => suite.service.get(path, init);
  const raw = (...pieces: (string | Buffer)[]) => rawRequest(suite.service.url, pieces);

  describe('that are not HTTP', () => {
    const malformed: [what: string, bytes: string | Buffer, status: number][] = [
      ['garbage', 'nonsense\r\n\r\n', 400],
      ['binary data', Buffer.from([0x16, 0x03, 0x01, 0x00, 0xff, 0x0d, 0x0a, 0x0d, 0x0a]), 400],
      ['a NUL in the URL', 'GET /search?q=\0a HTTP/1.1\r\nHost: a\r\n\r\n', 400],
      ['a NUL in a header', 'GET /ping HTTP/1.1\r\nHost: a\r\nX-A: \0\r\n\r\n', 400],
      ['no Host', 'GET /ping HTTP/1.1\r\n\r\n', 400],
      ['two lengths', 'GET /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
      [
        'a length and chunks',
        'POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
        400,
      ],
      ['64 KB of headers', `GET /ping HTTP/1.1\r\nHost: a\r\nX-A: ${'x'.repeat(65_536)}\r\n\r\n`, 431],
      ['a URL of 64 KB', `GET /search?q=${'x'.repeat(65_536)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431],
    ];
    for (const [what, bytes, status] of malformed) {
      it(`get ${status} with a problem: ${what}`, async () => {
        const answer = await raw(bytes);
        expect(answer.status).to.equal(status);
        expect(answer.headers.get('Content-Type')).to.equal('application/problem+json');
        const code = status === 431 ? 'headers_too_large' : 'malformed_request';
        expect(JSON.parse(answer.text)).to.include({ status, code });
        expect(answer.headers.get('Connection')).to.equal('close');
      });
    }

    // The server closes these connections after ten seconds or more.
    const itConcurrently = concurrentTests();

    itConcurrently('get 408 if they arrive too slowly', async () => {
      const began = Date.now();
      const drops = Array.from({ length: 60 }, (_, i) => `X-${i}: a\r\n`);
      const pieces = ['GET /ping HTTP/1.1\r\nHost: a\r\n', ...drops];
      const answer = await rawRequest(suite.service.url, pieces, { pauseMs: 500 });
      expect(answer.status).to.equal(408);
      expect(JSON.parse(answer.text)).to.include({ status: 408, code: 'request_timeout' });
      expect(Date.now() - began).to.be.lessThan(40_000);
    });

    itConcurrently('are closed if nothing arrives', async () => {
      const began = Date.now();
      const { status } = await rawRequest(suite.service.url, []);
      expect(status, 'no response: browsers connect in advance').to.equal(0);
      expect(Date.now() - began).to.be.lessThan(15_000);
    });

    itConcurrently('do not delay others', async () => {
      const slow = Array.from({ length: 200 }, () =>
        rawRequest(suite.service.url, ['GET /ping HTTP/1.1\r\n']),
      );
      const began = Date.now();
      for (let i = 0; i < 20; i++) expect((await get('/search?q=alpha')).status).to.equal(200);
      expect(Date.now() - began).to.be.lessThan(2000);
      await Promise.all(slow);
    });
  });

  describe('with an odd URL', () => {
    const odd: [path: string, status: number][] = [
      ['/%', 404],
      ['/%00', 404],
      ['/..%2f..%2fetc/passwd', 404],
      ['/search/', 404],
      ['//search?q=alpha', 404],
      ['/SEARCH?q=alpha', 404],
      ['/__proto__', 404],
      ['/constructor', 404],
      ['/search?q=%', 400],
      ['/search?q=a%', 200],
      ['/search?q=%zz', 200],
      ['/search?q=%00%00', 200],
      ['/search?q=%ED%A0%80%ED%A0%80', 400],
      ['/search?q=%C0%AF%C0%AF', 400],
      ['/search?q=%F0%9F%9A%80%F0%9F%9A%80', 200],
      ['/search?q[]=alpha', 400],
      ['/search?q[a]=alpha', 400],
      ['/search?q=alpha&q=alpha', 400],
      ['/search?__proto__=alpha', 400],
      ['/search?q=__proto__&__proto__[limit]=1', 200],
      ['/search?q=constructor&limit=5', 200],
      ['/search?q=alpha&limit=__proto__', 400],
      ['/search?q=alpha&limit=1;2', 400],
      ['/search?q=alpha&limit=%00', 400],
      ['/search?q=alpha&limit=999999999999999999999999', 200],
      ['/search?;q=alpha', 400],
      ['/search?&&&q=alpha&&', 200],
      ['/search?q=alpha?q=beta', 200],
      ['/browse?page=1e3', 400],
      ['/browse?page=%2B1', 400],
      ['/browse?page=9007199254740991&limit=500', 200],
    ];
    for (const [path, status] of odd) {
      it(`get ${status}: ${path}`, async () => {
        const answer = await get(path);
        expect(answer.status, answer.text).to.equal(status);
      });
    }

    it('get 200 if the query is a name that looks like code', async () => {
      for (const name of NAMES) {
        const { body } = await get(`/search?q=${encodeURIComponent(name)}`);
        expect(body.results[0]).to.include({ name, rank: 0 });
      }
    });

    it('get 400 for the longest accepted URL, even with repeated parameters', async () => {
      expect((await get(`/search?q=${'x'.repeat(15_000)}`)).status).to.equal(400);
      expect((await get(`/search?${'q=ab&'.repeat(3000)}`)).status).to.equal(400);
      expect((await get(`/search?${'a&'.repeat(7000)}q=alpha`)).status).to.equal(200);
    });
  });

  describe('of other methods', () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'PROPFIND', 'TRACE']) {
      it(`get 405: ${method}`, async () => {
        const { status, headers } = await raw(
          `${method} /search?q=alpha HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
        );
        expect(status).to.equal(405);
        expect(headers.get('Allow')).to.equal('GET, HEAD');
      });
    }

    it('are not tunnelled, but get 405: CONNECT', async () => {
      const { status, headers } = await raw('CONNECT other.example:443 HTTP/1.1\r\nHost: a\r\n\r\n');
      expect(status).to.equal(405);
      expect(headers.get('Allow')).to.equal('GET, HEAD');
    });
  });
});
