import { METHODS } from 'node:http';
import { expect } from 'chai';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { UNCACHED } from '../support/background-reader.js';
import { expectProblem } from '../support/expect-problem.js';
import { getRequest, useConnections, type RawResponse } from '../support/raw-connection.js';
import { useSharedService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const CLOSING = 'Connection: close\r\n';

// Timeouts: test/unit/http/server/http-server.test.ts.
describe('Unusual requests', function () {
  this.timeout(60_000);
  const suite = useSharedService(() => UNCACHED);
  const { open, send, sendOne } = useConnections(() => suite.service.url);

  const statusesOf = (responses: readonly RawResponse[]) => responses.map(({ status }) => status);
  const line = (request: string, ...headers: string[]) => [request, ...headers, '', ''].join('\r\n');

  function expectRawProblem(response: RawResponse, status: number, code: string): void {
    expectProblem({ ...response, body: JSON.parse(response.text) as unknown }, status, code);
  }

  const big = 'x'.repeat(65_536);
  const faults: [what: string, bytes: string | Buffer, status: number][] = [
    ['garbage', 'nonsense\r\n\r\n', 400],
    ['TLS', Buffer.from([0x16, 0x03, 0x01, 0x00, 0xff]), 400],
    ['the start of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['a target that is not percent-encoded', getRequest('/search?q=café'), 400],
    ['a target without a slash', getRequest('ping'), 400],
    ['a large header', getRequest('/ping', `X: ${big}\r\n`), 431],
    ['a large target', getRequest(`/search?q=${big}`), 431],
    ['another expectation', getRequest('/ping', `Expect: foo\r\n${CLOSING}`), 417],
  ];
  for (const [what, bytes, status] of faults) {
    it(`get ${status} without a body: ${what}`, async () => {
      expect(await sendOne(bytes)).to.include({ status, text: '' });
    });
  }

  describe('never smuggle another one in a body of unclear length:', () => {
    const hidden = getRequest('/openapi.json', CLOSING);
    const chunks = `0\r\n\r\n${hidden}`;
    const bodies: [headers: string, body: string][] = [
      ['Transfer-Encoding: gzip', hidden],
      ['Transfer-Encoding: chunked\r\nContent-Length: 5', chunks],
      ['Content-Length: 5\r\nTransfer-Encoding: gzip', hidden],
      ['Transfer-Encoding : chunked', chunks],
      ['Content-Length: 5\r\nContent-Length: 6', `12345${hidden}`],
    ];
    for (const method of ['GET', 'POST']) {
      it(`connections are closed after ${method}`, async () => {
        for (const [headers, body] of bodies) {
          const client = await open(line(`${method} /ping HTTP/1.1`, 'Host: a', headers) + body);
          await client.closed;
          const { responses } = client;
          expect(responses, headers).to.have.length.within(0, 1);
          for (const { text } of responses) expect(text, headers).not.to.contain('openapi');
        }
      });
    }

    it('bodies of known length are ignored', async () => {
      const body = `12\r\n\r\n${hidden}`;
      const withLength = `POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
      const chunked = `PUT /ping HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
      const responses = await send(withLength + chunked + getRequest('/ping', CLOSING));
      expect(statusesOf(responses)).to.deep.equal([405, 405, 200]);
      for (const { headers } of responses.slice(0, 2)) expect(headers.get('Allow')).to.equal('GET, HEAD');
    });
  });

  it('get their response before their body has arrived', async () => {
    const head = 'PUT /ping HTTP/1.1\r\nHost: a\r\n';
    const starts = [
      `${head}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n`,
      `${head}Content-Length: 9\r\n\r\n1`,
      getRequest('/ping', 'Content-Length: 5\r\n'),
    ];
    for (const start of starts) {
      const client = await open(start);
      await waitFor(() => client.responses.length === 1, 'the response');
      expect(statusesOf(client.responses)).to.deep.equal([start.startsWith('GET') ? 200 : 405]);
    }
  });

  it('get 405 with any method that the parser knows, else 400', async () => {
    for (const method of ['PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'TRACE', 'M-SEARCH', 'QUERY', 'BREW']) {
      const response = await sendOne(
        line(`${method} /search?q=alpha HTTP/1.1`, 'Host: a', 'Connection: close'),
      );
      // Node's, which differ from version to version.
      const isKnown = METHODS.includes(method);
      if (isKnown) expectRawProblem(response, 405, 'method_not_allowed');
      else expect(response).to.include({ status: 400, text: '' });
      expect(response.headers.get('Allow'), method).to.equal(isKnown ? 'GET, HEAD' : null);
    }
  });

  it('get 404 if their target is not a path: of a proxy, or of the whole server', async () => {
    const targets = ['http://registry.example/ping', 'HTTPS://a', 'http://[/', 'ftp://a/ping', '*', '//?#%'];
    for (const target of targets)
      expectRawProblem(await sendOne(getRequest(target, CLOSING)), 404, 'not_found');
    const options = line('OPTIONS * HTTP/1.1', 'Host: a', 'Connection: close');
    expectRawProblem(await sendOne(options), 404, 'not_found');
  });

  it('never get an unexpected response, whatever their target is', async () => {
    const characters = '/?#[]@:%*.\\|^`{}<>"\'~;=&+, \t\u00a0éa1'.split('');
    const random = seededRandom(7);
    const target = () =>
      pick(random, ['/', 'http://', 'http://a', '//', '']) +
      Array.from({ length: integer(random, 1, 8) }, () => pick(random, characters)).join('');
    for (let i = 0; i < 20; i++) {
      const all = Array.from({ length: 25 }, (_, j) =>
        Buffer.from(getRequest(target(), CLOSING), j % 2 === 0 ? 'latin1' : 'utf8'),
      );
      for (const response of await Promise.all(all.map(sendOne))) {
        const { status, headers, text } = response;
        expect(status, text).to.be.oneOf([200, 400, 404]);
        if (status === 400) expect(text).to.equal('');
        else expect(headers.get('X-Request-Id')).to.match(/^[\w.:-]{1,64}$/);
        if (status === 404) expectRawProblem(response, 404, 'not_found');
      }
    }
  });

  it('get their response even if the client is still sending', async () => {
    const size = 20_000_000;
    const start = `POST / HTTP/1.1\r\nHost: a\r\n${CLOSING}Content-Length: ${size}\r\n\r\n`;
    expect(await sendOne(start + 'x'.repeat(size))).to.have.property('status', 405);
  });
});
