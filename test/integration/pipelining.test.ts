import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { bundledPackages } from '../support/datasets.js';
import { getRequest, RawConnection } from '../support/raw-connection.js';
import { UNCACHED } from '../support/background-reader.js';
import { useProxiedService } from '../support/proxied-service.js';
import { waitFor } from '../support/wait-for.js';

/** Requests of one connection that the service processes at a time. */
const AT_A_TIME = 4;

const PACKAGES = bundledPackages().slice(0, 3000);

describe('Pipelined requests', function () {
  this.timeout(60_000);
  /** Searches that have arrived at Elasticsearch. */
  let searches = 0;
  const opened: RawConnection[] = [];

  const suite = useProxiedService(() => PACKAGES, UNCACHED);
  before(() => {
    suite.proxy.hold('before', (_method, path) => {
      if (path.includes('_msearch')) searches++;
      return false;
    });
  });
  beforeEach(() => (searches = 0));
  afterEach(() => {
    for (const connection of opened.splice(0)) connection.destroy();
  });

  async function open(): Promise<RawConnection> {
    const connection = await RawConnection.open(suite.service.url);
    opened.push(connection);
    return connection;
  }

  const queries = Array.from({ length: 20 }, (_, i) => `lib${i.toString(36)}`);
  const searchRequests = queries.map((q) => getRequest(`/search?limit=1&q=${q}`)).join('');

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
    const client = await open();
    client.send(searchRequests);
    await held.arrived;
    await pause(300);
    expect(searches).to.equal(AT_A_TIME);
    held.release();
    await waitFor(() => client.responses.length === queries.length, 'all responses');
    const answered = client.responses.map(({ text }) => (JSON.parse(text) as { query: string }).query);
    expect(answered).to.deep.equal(queries);
    expect(searches).to.equal(queries.length);
  });

  it('are not processed after the client has gone', async () => {
    const held = holdSearches();
    const client = await open();
    client.send(searchRequests);
    await held.arrived;
    client.destroy();
    await client.closed;
    await pause(100);
    held.release();
    await pause(500);
    expect(searches).to.equal(AT_A_TIME);
  });

  it('are all answered, in order, however many arrive at once', async () => {
    const client = await open();
    const paths = Array.from({ length: 5000 }, (_, i) => (i % 7 === 0 ? `/nothing/${i}` : '/ping'));
    client.send(paths.map((path) => getRequest(path)).join(''));
    await waitFor(() => client.responses.length > 0, 'the first response');
    // Other clients are served meanwhile.
    expect((await suite.service.get('/ping')).status).to.equal(200);
    await waitFor(() => client.responses.length === paths.length, 'all responses', 30_000);
    expect(client.responses.map(({ status }) => status)).to.deep.equal(
      paths.map((path) => (path === '/ping' ? 200 : 404)),
    );
  });

  it('are all answered to a client that reads slowly', async () => {
    const client = await RawConnection.openUnread(suite.service.url);
    opened.push(client);
    const pages = Array.from({ length: 60 }, (_, i) => i + 1);
    client.send(pages.map((page) => getRequest(`/browse?limit=500&page=${page}`)).join(''));
    await pause(1000);
    client.read();
    await waitFor(() => client.responses.length === pages.length, 'all responses', 30_000);
    const answered = client.responses.map(({ text }) => (JSON.parse(text) as { page: number }).page);
    expect(answered).to.deep.equal(pages);
  });

  describe('with a body', () => {
    const body = `12\r\n\r\n${getRequest('/nothing')}`;
    const withLength = `POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const chunked = 'PUT /ping HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
    const inOneChunk = `${chunked}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

    for (const request of [
      withLength,
      inOneChunk,
      withLength.replace('Host', 'Expect: 100-continue\r\nHost'),
    ]) {
      it(`are the last on their connection: ${request.split('\r\n', 2)[1]}, ${request.slice(0, 4)}`, async () => {
        const client = await open();
        client.send(searchRequests + request + getRequest('/ping') + request);
        await client.closed;
        expect(client.error).to.equal(undefined);
        const answered = client.responses.map(({ status }) => status);
        expect(answered).to.deep.equal([...queries.map(() => 200), 405]);
        expect(client.responses.at(-1)?.headers.get('Connection')).to.equal('close');
        expect(client.responses.at(-1)?.headers.get('Allow')).to.equal('GET, HEAD');
      });
    }

    it('are not the last if the body is empty', async () => {
      const client = await open();
      client.send(getRequest('/ping', 'Content-Length: 0\r\n').repeat(20));
      await waitFor(() => client.responses.length === 20, 'all responses');
      expect(client.responses.map(({ status }) => status)).to.deep.equal(queries.map(() => 200));
    });

    it('get their response before the body has arrived', async () => {
      for (const head of [
        `${chunked}1\r\nx\r\n`,
        withLength.slice(0, -20),
        getRequest('/ping', 'Content-Length: 5\r\n'),
      ]) {
        const client = await open();
        client.send(head);
        await waitFor(() => client.responses.length === 1, 'the response', 2000);
        await client.closed;
        expect(client.error).to.equal(undefined);
      }
    });

    it('cost little processor time, however many chunks the body has', async () => {
      const client = await open();
      const chunks = '1\r\nx\r\n'.repeat(500_000);
      const began = process.cpuUsage();
      client.send(chunked + chunks);
      await client.closed;
      const { user, system } = process.cpuUsage(began);
      expect((user + system) / 1000).to.be.lessThan(250);
      expect(client.responses.map(({ status }) => status)).to.deep.equal([405]);
    });
  });

  it('are answered even if the client has closed its side of the connection', async () => {
    const held = holdSearches();
    const client = await open();
    client.send(searchRequests);
    client.endSending();
    await held.arrived;
    await pause(100);
    held.release();
    await client.closed;
    expect(client.error).to.equal(undefined);
    expect(client.responses).to.have.length(queries.length);
  });
});
