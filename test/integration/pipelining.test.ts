import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { UNCACHED } from '../support/background-reader.js';
import { packagesNamed } from '../support/datasets.js';
import { useProxiedService } from '../support/proxied-service.js';
import { getRequest, useConnections, type RawConnection } from '../support/raw-connection.js';
import { waitFor } from '../support/wait-for.js';

/** Requests of one connection that the service processes at a time. */
const AT_A_TIME = 4;

/** Packages whose long URLs make a page 200 KB. */
const PACKAGES = packagesNamed(Array.from({ length: 100 }, (_, i) => `name-${i}`)).map((entry) => ({
  ...entry,
  url: `${entry.url}?${'x'.repeat(1900)}`,
}));

// What unread responses and bodies cost: test/faults/serial/unread-responses.test.ts.
describe('Pipelined requests', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => PACKAGES, UNCACHED);
  const { open } = useConnections(() => suite.service.url);
  /** Searches that have arrived at Elasticsearch. */
  let searches = 0;
  before(() => {
    suite.proxy.hold('before', (_method, path) => {
      if (path.includes('_msearch')) searches++;
      return false;
    });
  });
  beforeEach(() => (searches = 0));

  const queries = Array.from({ length: 20 }, (_, i) => `lib${i.toString(36)}`);
  const searchRequests = queries.map((q) => getRequest(`/search?limit=1&q=${q}`)).join('');
  const statusesOf = ({ responses }: RawConnection) => responses.map(({ status }) => status);

  /** Holds as many searches as are processed at a time. */
  function holdSearches() {
    const holds = Array.from({ length: AT_A_TIME }, () =>
      suite.proxy.hold('before', (_method, path) => path.includes('_msearch')),
    );
    return {
      arrived: Promise.all(holds.map(({ arrived }) => arrived)),
      release: () => holds.forEach((hold) => hold.release()),
    };
  }

  it('are processed a few at a time, and answered in order', async () => {
    const held = holdSearches();
    const client = await open(searchRequests);
    await held.arrived;
    await pause(200);
    expect(searches).to.equal(AT_A_TIME);
    held.release();
    await waitFor(() => client.responses.length === queries.length, 'all responses');
    const answered = client.responses.map(({ text }) => (JSON.parse(text) as { query: string }).query);
    expect(answered).to.deep.equal(queries);
    expect(searches).to.equal(queries.length);
  });

  it('are not processed after the client has gone', async () => {
    const held = holdSearches();
    const client = await open(searchRequests);
    await held.arrived;
    client.destroy();
    await client.closed;
    await pause(50);
    held.release();
    await pause(200);
    expect(searches).to.equal(AT_A_TIME);
  });

  it('are all answered, in order, however many arrive at once', async () => {
    const paths = Array.from({ length: 2000 }, (_, i) => (i % 7 === 0 ? `/nothing/${i}` : '/ping'));
    const client = await open(paths.map((path) => getRequest(path)).join(''));
    await waitFor(() => client.responses.length > 0, 'the first response');
    // Other clients are served meanwhile.
    expect((await suite.service.get('/ping')).status).to.equal(200);
    expect(client.responses.length).to.be.lessThan(paths.length);
    await waitFor(() => client.responses.length === paths.length, 'all responses', 30_000);
    expect(statusesOf(client)).to.deep.equal(paths.map((path) => (path === '/ping' ? 200 : 404)));
  });

  it('are all answered to a client that reads slowly', async () => {
    // 12 MB: more than the buffers of sockets.
    const limits = Array.from({ length: 60 }, (_, i) => 100 + i);
    const client = await open(limits.map((limit) => getRequest(`/browse?limit=${limit}`)).join(''), false);
    await pause(500);
    client.read();
    await waitFor(() => client.responses.length === limits.length, 'all responses', 30_000);
    const answered = client.responses.map(({ text }) => (JSON.parse(text) as { limit: number }).limit);
    expect(answered).to.deep.equal(limits);
  });

  it('are answered even if the client has closed its side of the connection', async () => {
    const held = holdSearches();
    const client = await open(searchRequests);
    client.endSending();
    await held.arrived;
    await pause(50);
    held.release();
    await client.closed;
    expect(client.error).to.equal(undefined);
    expect(client.responses).to.have.length(queries.length);
  });

  describe('with a body', () => {
    const body = `12\r\n\r\n${getRequest('/nothing')}`;
    const withLength = `POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const chunked = 'PUT /ping HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
    const last: [what: string, request: string][] = [
      ['with a length', withLength],
      ['in a chunk', `${chunked}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`],
      ['after Expect', withLength.replace('Host', 'Expect: 100-continue\r\nHost')],
    ];
    for (const [what, request] of last) {
      it(`are the last on their connection: ${what}`, async () => {
        const client = await open(searchRequests + request + getRequest('/ping') + request);
        await client.closed;
        expect(client.error).to.equal(undefined);
        expect(statusesOf(client)).to.deep.equal([...queries.map(() => 200), 405]);
        expect(client.responses.at(-1)?.headers.get('Connection')).to.equal('close');
        expect(client.responses.at(-1)?.headers.get('Allow')).to.equal('GET, HEAD');
      });
    }

    it('are not the last if the body is empty', async () => {
      const client = await open(getRequest('/ping', 'Content-Length: 0\r\n').repeat(20));
      await waitFor(() => client.responses.length === 20, 'all responses');
      expect(statusesOf(client)).to.deep.equal(queries.map(() => 200));
    });

    it('get their response before the body has arrived', async () => {
      const heads = [`${chunked}1\r\nx\r\n`, withLength.slice(0, -20)];
      for (const head of [...heads, getRequest('/ping', 'Content-Length: 5\r\n')]) {
        const client = await open(head);
        await client.closed;
        expect(client.error).to.equal(undefined);
        expect(statusesOf(client)).to.deep.equal([head.startsWith('GET') ? 200 : 405]);
      }
    });
  });
});
