import { once } from 'node:events';
import { connect } from 'node:net';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { HttpServer, SERVER_TIMEOUTS } from '../../../../src/http/server/http-server.js';
import { getRequest, useConnections, type RawConnection } from '../../../support/raw-connection.js';
import { waitFor } from '../../../support/wait-for.js';

/** More than the buffers of sockets. */
const LARGE = Buffer.alloc(12 * 2 ** 20, 'x');
const HALF = 'GET / HTTP/1.1\r\nHost: a\r\n';

describe('An HttpServer', () => {
  const timeouts = { ...SERVER_TIMEOUTS, headers: 200, request: 300, inactive: 1000, drain: 600 };
  let server: HttpServer;
  let url: string;
  /** Responses to `/held`. */
  const held: ServerResponse[] = [];
  const { open } = useConnections(() => url);

  beforeEach(async () => {
    server = new HttpServer(
      ({ url: path }, response) => {
        if (path === '/held') held.push(response);
        else
          response
            .writeHead(200, ['Content-Length', path === '/large' ? LARGE.length : 4])
            .end(path === '/large' ? LARGE : 'pong');
      },
      10,
      timeouts,
    );
    url = await server.listen(0, '127.0.0.1');
  });
  afterEach(async () => {
    held.length = 0;
    await server.stop();
  });

  const statusesOf = ({ responses }: RawConnection) => responses.map(({ status }) => status);

  it('responds with 408 to requests that do not arrive completely, also if they trickle', async () => {
    const first = await open(HALF);
    const second = await open(getRequest('/') + HALF);
    const trickling = await open(HALF);
    const timer = setInterval(() => trickling.send('X: a\r\n'), 50);
    await Promise.all([first, second, trickling].map(({ closed }) => closed));
    clearInterval(timer);
    expect([first, second, trickling].map(statusesOf)).to.deep.equal([[408], [200, 408], [408]]);
  });

  it('closes connections beyond the maximum at once', async () => {
    const served = await Promise.all(Array.from({ length: 10 }, () => open(getRequest('/'))));
    await waitFor(() => served.every(({ responses }) => responses.length === 1), 'the responses');
    await (
      await open(getRequest('/'))
    ).closed;
    expect([server.open, server.refused]).to.deep.equal([10, 1]);
  });

  it('disconnects clients that do not read, but not one that reads a large response slowly', async () => {
    const slow = await open(getRequest('/large'), false);
    const trickling = await open(getRequest('/large'), false);
    await open(getRequest('/large'), false);
    slow.readAt(4 * 2 ** 20);
    trickling.readAt(1);
    await waitFor(() => server.open === 1, 'the others to be disconnected');
    expect(slow.responses).to.deep.equal([]);
    await waitFor(() => slow.responses.length === 1, 'the slow reader to finish', 15_000);
    expect(slow.responses[0]?.text).to.have.length(LARGE.length);
    expect([slow.error, server.open]).to.deep.equal([undefined, 1]);
  });

  describe('that stops', () => {
    it('closes connections in use after their next response, which says so', async () => {
      const idle = await open(getRequest('/'));
      const used = await open(getRequest('/held').repeat(2));
      await waitFor(() => idle.responses.length === 1 && held.length === 2, 'the requests');
      const began = performance.now();
      const stopped = server.stop();
      await idle.closed;
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
      expect(error.code).to.equal('ECONNREFUSED');
      held[0]?.writeHead(200, ['Content-Length', 4]).end('pong');
      await Promise.all([stopped, used.closed]);
      expect(performance.now() - began).to.be.lessThan(timeouts.drain / 2);
      expect(statusesOf(used)).to.deep.equal([200]);
      expect(used.responses[0]?.headers.get('Connection')).to.equal('close');
      expect([idle.error, used.error]).to.deep.equal([undefined, undefined]);
    });

    it('resets half a request or a response that is not read after a while', async () => {
      await open(HALF);
      const waiting = await open(getRequest('/held'));
      await open(getRequest('/large'), false);
      await waitFor(() => server.open === 3, 'the connections');
      const began = performance.now();
      await server.stop();
      expect(performance.now() - began).to.be.within(timeouts.drain - 10, timeouts.drain + 500);
      await waiting.closed;
      expect(waiting.error).to.equal('ECONNRESET');
      await waitFor(() => server.open === 0, 'all connections to be closed');
    });
  });
});
