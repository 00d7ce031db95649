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
    unread: 1000,
    pipelinedIdle: 200,
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
      unread: 25_000,
      pipelining: 10_000,
      pipelinedIdle: 10_000,
      keepAlive: 75_000,
      linger: 5000,
      drain: 8000,
    });
  });

  it('responds with 408 to requests that do not arrive completely, and ignores what follows', async () => {
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

  it('closes a connection that has pipelined and is idle, and keeps others', async () => {
    const pipelining = await open(getRequest('/').repeat(2));
    const usual = await open(getRequest('/'));
    await pipelining.closed;
    expect(statusesOf(pipelining)).to.deep.equal([200, 200]);
    usual.send(getRequest('/'));
    await waitFor(() => usual.responses.length === 2, 'the second response');
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
    await waitFor(() => server.connections.closed.unread === 2, 'the others to be disconnected');
    expect(slow.responses).to.deep.equal([]);
    await waitFor(() => slow.responses.length === 1, 'the slow reader to finish', 15_000);
    expect(slow.responses[0]?.text).to.have.length(LARGE.length);
    expect(server.connections.closed).to.deep.equal({ unread: 2, evicted: 0, refused: 0 });
    await pause(50);
    expect([slow.error, server.connections.open]).to.deep.equal([undefined, 1]);
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
    expect(server.connections.closed).to.deep.equal({ unread: 0, evicted: 0, refused: 0 });
  });
});
