import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { getRequest, RawConnection, type RawResponse } from '../support/raw-connection.js';
import { integer, pick, seededRandom } from '../support/random.js';
import { useService } from '../support/service.js';

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

describe('Requests that reach no route', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['alpha', 'beta']));

  /** Sends bytes on a connection of their own. @returns all responses, after the service has closed it. */
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

  describe('because their target is no path', () => {
    const targets = ['http://[/', 'http://', 'http:///ping', 'http://a:99999/ping', 'ftp://a/ping'];
    for (const target of [...targets, '*', 'http://%/', 'https://[::1/']) {
      it(`are answered 400: ${target}`, async () => {
        expectRawProblem(await sendOne(getRequest(target)), 400, 'malformed_request');
      });
    }

    it('are answered like others if it is a URL', async () => {
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

    it('are answered with a problem to OPTIONS *', async () => {
      const response = await sendOne('OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      expectRawProblem(response, 404, 'not_found');
    });
  });

  it('never get another format, whatever their target is', async () => {
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
