import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { BURST, Connections } from './connections.js';
import {
  checkRequest,
  connectNotAllowed,
  expectationFailed,
  hasBody,
  problemOfClientError,
} from './malformed-request.js';
import { PacedSocket } from './paced-socket.js';
import { MAX_HEADER_BYTES, type Problem } from '../response/problem.js';
import { rawProblem, sendProblem } from '../response/problem-response.js';
import { requestIdOf } from '../request/request-context.js';
import { SERVER_TIMEOUTS, type ServerTimeouts } from './timeouts.js';

/** How often Node checks the timeouts of requests at least, in milliseconds. */
const CHECK_MS = 1_000;

/**
 * An HTTP server with timeouts, a bounded number of connections, and bounded memory for each of them.
 * Requests that do not reach the app get a problem (RFC 9457).
 */
export class HttpServer {
  readonly connections: Connections;
  readonly #server: Server;

  /** @param maxConnections maximum number of open connections. */
  constructor(
    serve: RequestListener,
    maxConnections: number,
    private readonly timeouts: ServerTimeouts = SERVER_TIMEOUTS,
  ) {
    const connections = new Connections(maxConnections, timeouts);
    const server = createServer({
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: timeouts.headers,
      requestTimeout: timeouts.request,
      connectionsCheckingInterval: Math.min(CHECK_MS, timeouts.headers),
      keepAliveTimeout: timeouts.keepAlive,
      // `checkRequest` rejects a missing Host with a problem.
      requireHostHeader: false,
    });
    const handle = (request: IncomingMessage, response: ServerResponse, problem?: Problem) => {
      const rejection = checkRequest(request) ?? problem;
      const isLast = rejection !== undefined || hasBody(request);
      if (!connectionOf(request.socket).begin(response, isLast)) return;
      if (rejection === undefined) serve(request, response);
      else sendProblem(response, rejection, requestIdOf(request));
    };
    server.on('request', handle);
    server.on('checkContinue', (request, response) => {
      // No body is asked for, because none is read.
      if (!hasBody(request)) response.writeContinue();
      handle(request, response);
    });
    server.on('checkExpectation', (request, response) => handle(request, response, expectationFailed()));
    server.on('connect', (request, socket) => {
      connectionOf(socket).close(rawProblem(connectNotAllowed(), request));
    });
    server.on('clientError', (error, socket) => {
      const problem = problemOfClientError(error);
      if (problem === undefined) socket.destroy();
      else connectionOf(socket).close(rawProblem(problem));
    });
    // `keepAlive` or `pipelinedIdle` after a response, `unread` otherwise.
    server.on('timeout', (socket: Socket) => connections.closeInactive(connectionOf(socket)));
    server.timeout = timeouts.unread;
    server.maxConnections = maxConnections + BURST;
    server.on('drop', () => connections.closed.refused++);
    // No limit: `checkRequest` must find a repeated Host. Their size is limited.
    server.maxHeadersCount = 0;
    // Node's own listener gets each connection in place of its socket.
    const [parse] = server.listeners('connection');
    server.removeAllListeners('connection');
    server.on('connection', (socket: Socket) => {
      parse?.call(server, connections.add(socket));
    });
    // `close` calls it. Node's own also closes connections whose clients are still reading a response.
    server.closeIdleConnections = () => connections.stop();
    this.connections = connections;
    this.#server = server;
  }

  /**
   * @returns its address, such as `http://127.0.0.1:3000`.
   * @throws what `listen` throws, such as EADDRINUSE.
   */
  async listen(port: number, host: string): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    this.connections.start();
    return urlOf(this.#server.address() as AddressInfo);
  }

  /** Stops accepting connections, and waits for the requests in flight. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    const late = setTimeout(() => this.connections.closeAll(), this.timeouts.drain);
    await closed;
    clearTimeout(late);
  }
}

function connectionOf(socket: Duplex): PacedSocket {
  if (socket instanceof PacedSocket) return socket;
  throw new Error('not a connection of this server');
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
