import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { HttpServer } from '../../../../src/http/server/http-server.js';
import { SERVER_TIMEOUTS } from '../../../../src/http/server/timeouts.js';
import { expectRawProblem } from '../../../support/expect-problem.js';
import { getRequest, RawConnection } from '../../../support/raw-connection.js';
import { waitFor } from '../../../support/wait-for.js';

/** More than the buffers of sockets. */
const LARGE = Buffer.alloc(12 * 2 ** 20, 'x');
const HALF = 'GET / HTTP/1.1\r\nHost: a\r\n';

describe('An HttpServer', () => {
  const timeouts = {
    ...SERVER_TIMEOUTS,
    headers: 200,
    request: 300,
    inactive: 1000,
    linger: 200,
  };
  let server: HttpServer;
  let url: string;
  const opened: RawConnection[] = [];

  beforeEach(async () => {
    const respond = (path = '') => (path === '/large' ? LARGE : 'pong');
    server = new HttpServer(({ url: path }, response) => response.end(respond(path)), 10, timeouts);
    url = await server.listen(0, '127.0.0.1');
  });
  afterEach(async () => {
    for (const client of opened.splice(0)) client.destroy();
    await server.stop();
  });

  async function open(bytes: string, isRead = true): Promise<RawConnection> {
    const client = await (isRead ? RawConnection.open(url) : RawConnection.openUnread(url));
    opened.push(client);
    if (bytes !== '') client.send(bytes);
    return client;
  }

  const statusesOf = ({ responses }: RawConnection) => responses.map(({ status }) => status);

  it('has the timeouts that docs/configuration.md promises', () => {
    expect(SERVER_TIMEOUTS).to.deep.equal({
      headers: 10_000,
      request: 15_000,
      inactive: 40_000,
      keepAlive: 75_000,
      linger: 5000,
      drain: 8000,
    });
  });

  it('responds with 408 to requests that do not arrive completely, and ignores later input', async () => {
    const first = await open(HALF);
    const second = await open(getRequest('/') + HALF);
    const trickling = await open(HALF);
    const timer = setInterval(() => trickling.send('X: a\r\n'), 50);
    const late = await open(HALF);
    await waitFor(() => late.responses.length > 0, 'the response');
    late.send(`\r\n${getRequest('/').repeat(5)}`);
    await Promise.all([first, second, trickling, late].map(({ closed }) => closed));
    clearInterval(timer);
    for (const { responses } of [first, trickling, late]) {
      expect(responses).to.have.length(1);
      for (const response of responses) expectRawProblem(response, 408, 'request_timeout');
    }
    expect(statusesOf(second)).to.deep.equal([200, 408]);
  });

  it('closes a connection without a request, and gives no response: browsers connect in advance', async () => {
    const client = await open('');
    await client.closed;
    expect(statusesOf(client)).to.deep.equal([]);
    expect(client.error).to.equal(undefined);
  });

  it('responds to pipelined requests in order, and to a CONNECT after them', async () => {
    const client = await open(getRequest('/').repeat(100) + 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.closed;
    expect(statusesOf(client)).to.deep.equal([...Array<number>(100).fill(200), 405]);
  });

  it('disconnects clients that together pipeline more than 4,096 requests without reading, and serves others', async () => {
    // Node reads 64 KB of each, and no more until responses are read.
    for (let i = 0; i < 5; i++) await open(getRequest('/large').repeat(2000), false);
    await waitFor(() => server.closed.refused > 0, 'a client to be disconnected');
    const others = await Promise.all([1, 2].map(() => open(getRequest('/').repeat(10))));
    await waitFor(() => others.every(({ responses }) => responses.length === 10), 'the others');
  });

  it('closes connections beyond the maximum at once', async () => {
    const served = await Promise.all(Array.from({ length: 10 }, () => open(getRequest('/'))));
    await waitFor(() => served.every(({ responses }) => responses.length === 1), 'the responses');
    await (
      await open(getRequest('/'))
    ).closed;
    expect(server.closed).to.deep.equal({ unread: 0, refused: 1 });
    expect(server.open).to.equal(10);
  });

  it('resets a connection that the client does not close after the last response', async () => {
    const client = await open('nonsense\r\n\r\n', false);
    await waitFor(() => {
      client.send('x');
      return client.error !== undefined;
    }, 'the reset');
    expect(client.error).to.be.oneOf(['ECONNRESET', 'EPIPE']);
  });

  it('disconnects clients that do not read, but not one that reads a large response slowly', async () => {
    const slow = await open(getRequest('/large'), false);
    const trickling = await open(getRequest('/large'), false);
    await open(getRequest('/large'), false);
    slow.readAt(4 * 2 ** 20);
    trickling.readAt(1);
    await waitFor(() => server.closed.unread === 2, 'the others to be disconnected');
    expect(slow.responses).to.deep.equal([]);
    await waitFor(() => slow.responses.length === 1, 'the slow reader to finish', 15_000);
    expect(slow.responses[0]?.text).to.have.length(LARGE.length);
    expect(server.closed).to.deep.equal({ unread: 2, refused: 0 });
    await pause(50);
    expect([slow.error, server.open]).to.deep.equal([undefined, 1]);
  });

  it('stops once a client that reads slowly has got its large response, and closes all other connections at once', async () => {
    const slow = await open(getRequest('/large'), false);
    slow.readAt(4 * 2 ** 20);
    const others = await Promise.all(
      ['', getRequest('/'), HALF, getRequest('/') + HALF].map((bytes) => open(bytes)),
    );
    await waitFor(() => others.flatMap(({ responses }) => responses).length === 2, 'the small responses');
    const began = performance.now();
    const stopped = server.stop();
    await Promise.all(others.map(({ closed }) => closed));
    expect(performance.now() - began).to.be.lessThan(100);
    expect(others.map(({ error }) => error)).to.deep.equal(others.map(() => undefined));
    await waitFor(() => slow.responses.length === 1, 'the slow reader to finish', 15_000);
    expect(slow.responses[0]?.text).to.have.length(LARGE.length);
    await stopped;
    expect(server.closed).to.deep.equal({ unread: 0, refused: 0 });
  });
});
