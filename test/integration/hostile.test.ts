import { Validator } from '@seriousme/openapi-schema-validator';
import { expect } from 'chai';
import { concurrentTests } from '../support/concurrent-tests.js';
import { packagesNamed } from '../support/datasets.js';
import { Promises } from '../support/promises.js';
import { rawRequest } from '../support/raw-request.js';
import { BYPASS_SECRET, REBUILD_SECRET, useService } from '../support/service.js';

const NAMES = ['alpha', '__proto__', 'constructor', 'a%b', 'a\\b', 'a*b', 'été', '🚀🚀'];
const ENDPOINTS = ['/ping', '/health', '/stats', '/browse', '/search?q=alpha', '/debug-ip', '/openapi.json'];
const SECRET_ENDPOINTS = ['/get-bypass?secret=wrong', '/rebuild?secret=wrong'];

describe('Hostile requests', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(NAMES));
  const get = (path: string, init?: RequestInit) => suite.service.get(path, init);
  const raw = (...pieces: (string | Buffer)[]) => rawRequest(suite.service.url, pieces);

  describe('that are no HTTP', () => {
    const malformed: [what: string, bytes: string | Buffer, status: number][] = [
      ['garbage', 'nonsense\r\n\r\n', 400],
      ['bytes that are no text', Buffer.from([0x16, 0x03, 0x01, 0x00, 0xff, 0x0d, 0x0a, 0x0d, 0x0a]), 400],
      ['a NUL in the address', 'GET /search?q=\0a HTTP/1.1\r\nHost: a\r\n\r\n', 400],
      ['a NUL in a header', 'GET /ping HTTP/1.1\r\nHost: a\r\nX-A: \0\r\n\r\n', 400],
      ['no Host', 'GET /ping HTTP/1.1\r\n\r\n', 400],
      ['two lengths', 'GET /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
      [
        'a length beside chunks',
        'POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
        400,
      ],
      ['64 KB of headers', `GET /ping HTTP/1.1\r\nHost: a\r\nX-A: ${'x'.repeat(65_536)}\r\n\r\n`, 431],
      ['an address of 64 KB', `GET /search?q=${'x'.repeat(65_536)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431],
    ];
    for (const [what, bytes, status] of malformed) {
      it(`are answered ${status}, in words: ${what}`, async () => {
        const answer = await raw(bytes);
        expect(answer.status).to.equal(status);
        expect(answer.headers.get('Content-Type')).to.equal('application/problem+json');
        const code = status === 431 ? 'headers_too_large' : 'malformed_request';
        expect(JSON.parse(answer.text)).to.include({ status, code });
        expect(answer.headers.get('Connection')).to.equal('close');
      });
    }

    // The server gives these up after ten seconds and more.
    const itConcurrently = concurrentTests();

    itConcurrently('are answered 408 where they come drop by drop, within 15 seconds', async () => {
      const began = Date.now();
      const drops = Array.from({ length: 60 }, (_, i) => `X-${i}: a\r\n`);
      const pieces = ['GET /ping HTTP/1.1\r\nHost: a\r\n', ...drops];
      const answer = await rawRequest(suite.service.url, pieces, { pauseMs: 500 });
      expect(answer.status).to.equal(408);
      expect(JSON.parse(answer.text)).to.include({ status: 408, code: 'request_timeout' });
      expect(Date.now() - began).to.be.lessThan(40_000);
    });

    itConcurrently('are closed where nothing comes at all', async () => {
      const began = Date.now();
      const { status } = await rawRequest(suite.service.url, []);
      expect(status, 'nothing: browsers connect in advance').to.equal(0);
      expect(Date.now() - began).to.be.lessThan(15_000);
    });

    itConcurrently('do not keep others waiting', async () => {
      const slow = Array.from({ length: 200 }, () =>
        rawRequest(suite.service.url, ['GET /ping HTTP/1.1\r\n']),
      );
      const began = Date.now();
      for (let i = 0; i < 20; i++) expect((await get('/search?q=alpha')).status).to.equal(200);
      expect(Date.now() - began).to.be.lessThan(2000);
      await Promise.all(slow);
    });
  });

  describe('whose address is odd', () => {
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
      it(`are answered ${status}: ${path}`, async () => {
        const answer = await get(path);
        expect(answer.status, answer.text).to.equal(status);
      });
    }

    it('find names that look like code', async () => {
      for (const name of NAMES) {
        const { body } = await get(`/search?q=${encodeURIComponent(name)}`);
        expect(body.results[0]).to.include({ name, rank: 0 });
      }
    });

    it('are answered 400 with the largest address that is heard, however it is repeated', async () => {
      expect((await get(`/search?q=${'x'.repeat(15_000)}`)).status).to.equal(400);
      expect((await get(`/search?${'q=ab&'.repeat(3000)}`)).status).to.equal(400);
      expect((await get(`/search?${'a&'.repeat(7000)}q=alpha`)).status).to.equal(200);
    });
  });

  describe('of other methods', () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'PROPFIND', 'TRACE']) {
      it(`are answered 405: ${method}`, async () => {
        const { status, headers } = await raw(
          `${method} /search?q=alpha HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
        );
        expect(status).to.equal(405);
        expect(headers.get('Allow')).to.equal('GET, HEAD');
      });
    }

    it('are not tunnelled, but answered 405: CONNECT', async () => {
      const { status, headers } = await raw('CONNECT other.example:443 HTTP/1.1\r\nHost: a\r\n\r\n');
      expect(status).to.equal(405);
      expect(headers.get('Allow')).to.equal('GET, HEAD');
    });
  });

  describe('of browsers', () => {
    it('may do nothing with an answer but read it', async () => {
      for (const path of [...ENDPOINTS, ...SECRET_ENDPOINTS, '/nowhere', '/search?q=a']) {
        const { headers } = await get(path);
        expect(headers.get('Content-Security-Policy'), path).to.equal(
          "default-src 'none';frame-ancestors 'none'",
        );
        expect(headers.get('X-Content-Type-Options'), path).to.equal('nosniff');
        expect(headers.get('Referrer-Policy'), path).to.equal('no-referrer');
        expect(headers.get('Strict-Transport-Security'), path).to.match(/^max-age=\d+/);
        expect(headers.has('X-Powered-By'), path).to.equal(false);
      }
    });

    it('may be of any origin on the public endpoints', async () => {
      for (const path of [...ENDPOINTS, '/search?q=a']) {
        const { headers } = await get(path, { headers: { Origin: 'https://other.example' } });
        expect(headers.get('Access-Control-Allow-Origin'), path).to.equal('*');
        expect(headers.get('Access-Control-Expose-Headers'), path).to.contain('X-Results-Truncated');
        expect(headers.has('Access-Control-Allow-Credentials'), path).to.equal(false);
      }
    });

    it('may ask first whether they may send a bypass token', async () => {
      const { status, headers } = await get('/search', {
        method: 'OPTIONS',
        headers: {
          Origin: 'https://other.example',
          'Access-Control-Request-Method': 'GET',
          'Access-Control-Request-Headers': 'x-bypass-token',
        },
      });
      expect(status).to.equal(204);
      expect(headers.get('Access-Control-Allow-Origin')).to.equal('*');
      expect(headers.get('Access-Control-Allow-Methods')).to.equal('GET,HEAD');
      expect(headers.get('Access-Control-Allow-Headers')).to.equal('X-Bypass-Token');
    });

    it('may be of no other origin on the secret ones, and keep nothing', async () => {
      for (const path of [...SECRET_ENDPOINTS, `/get-bypass?secret=${BYPASS_SECRET}`]) {
        const headers = { Origin: 'https://other.example', 'Access-Control-Request-Method': 'GET' };
        const answer = await get(path, { headers });
        expect(answer.headers.has('Access-Control-Allow-Origin'), path).to.equal(false);
        expect(answer.headers.get('Cross-Origin-Resource-Policy'), path).to.equal('same-origin');
        expect(answer.headers.get('Cache-Control'), path).to.equal('no-store');
        const asked = await get(path, { method: 'OPTIONS', headers });
        expect(asked.status, path).to.equal(405);
        expect(asked.headers.has('Access-Control-Allow-Origin'), path).to.equal(false);
      }
    });
  });

  it('are not shown their secrets, wherever they send them', async () => {
    const { text, body } = await get(`/debug-ip?secret=${REBUILD_SECRET}`, {
      headers: {
        Authorization: `Bearer ${REBUILD_SECRET}`,
        Cookie: `session=${REBUILD_SECRET}`,
        'X-Bypass-Token': BYPASS_SECRET,
        'X-Api-Key': BYPASS_SECRET,
        Referer: `https://api.example/rebuild?secret=${REBUILD_SECRET}`,
        'X-Session-Id': REBUILD_SECRET,
        Via: '1.1 shown',
      },
    });
    expect(text).not.to.contain('change-me');
    expect(body.headers).to.include({ via: '1.1 shown', referer: '[redacted]', cookie: '[redacted]' });
  });

  it('can read what every endpoint promises: a valid OpenAPI document, whose examples keep it', async () => {
    const { body: document } = await get('/openapi.json');
    const { valid, errors } = await new Validator().validate(
      document as Parameters<Validator['validate']>[0],
    );
    expect(errors).to.be.undefined;
    expect(valid).to.equal(true);
    new Promises(document).checkExamples();
    expect(Object.keys(document.paths)).to.have.members(
      [...ENDPOINTS, ...SECRET_ENDPOINTS].map((path) => path.replace(/\?.*/, '')),
    );
  });
});
