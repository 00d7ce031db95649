import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { MAX_HEADER_BYTES, type Problem } from '../response/problem.js';
import { CONNECTION_TIMEOUTS } from './connection.js';
import { ConnectionLimits } from './connection-limits.js';
import { rawProblem } from '../response/problem-response.js';
import { heldRequestClass, stopAtHeldRequests } from './pipelining.js';
import {
  checkRequest,
  connectNotAllowed,
  expectationFailed,
  problemOfClientError,
} from './malformed-request.js';

/** Timeouts of clients, in milliseconds. */
export const SERVER_TIMEOUTS = {
  ...CONNECTION_TIMEOUTS,
  /** How long a client may take to send its headers, or its whole request. Slower ones get 408. */
  headers: 10_000,
  request: 15_000,
};
export type ServerTimeouts = Readonly<typeof SERVER_TIMEOUTS>;

/** How often Node checks these at least, in milliseconds. */
const CHECK_MS = 1_000;
/**
 * Idle timeout, longer than that of common proxies: no connection is closed while a proxy sends a request.
 */
const KEEP_ALIVE_MS = 75_000;

/** Read-ahead of a connection with held requests, in bytes; one chunk of up to 64 KB may exceed it. */
const READ_AHEAD_BYTES = 16 * 1024;

/** How long requests in flight may take to finish when the server stops, in milliseconds. */
const DRAIN_MS = 8_000;

/**
 * An HTTP server with timeouts, a bounded number of connections, and bounded memory for each of them.
 * Requests that do not reach the app get a problem (RFC 9457).
 */
export class HttpServer {
  readonly connections: ConnectionLimits;
  readonly #server: Server;

  /** @param maxConnections maximum number of open connections. */
  constructor(respond: RequestListener, maxConnections: number, timeouts: ServerTimeouts = SERVER_TIMEOUTS) {
    const attach = (socket: Socket) => void server.emit('connection', socket);
    const connections = new ConnectionLimits(maxConnections, attach, timeouts);
    const options = {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: timeouts.headers,
      requestTimeout: timeouts.request,
      connectionsCheckingInterval: Math.min(CHECK_MS, timeouts.headers),
      keepAliveTimeout: KEEP_ALIVE_MS,
      highWaterMark: READ_AHEAD_BYTES,
      // `checkRequest` rejects a missing Host with a problem.
      requireHostHeader: false,
      IncomingMessage: heldRequestClass(
        (request) => connections.get(request.socket)?.mustHold(request) ?? false,
      ),
    };
    const reject = (request: IncomingMessage, problem: Problem) => {
      // An unread body would stop the socket from being read.
      request.resume();
      connections.get(request.socket)?.end(rawProblem(problem, request));
    };
    const server = createServer(options, (request, response) => {
      const problem = checkRequest(request);
      if (problem === undefined) {
        connections.get(request.socket)?.begin(response);
        respond(request, response);
      } else reject(request, problem);
    });
    server.on('checkExpectation', (request: IncomingMessage) => {
      reject(request, checkRequest(request) ?? expectationFailed());
    });
    server.on('connect', (request) => reject(request, connectNotAllowed()));
    server.on('clientError', (error, socket) => {
      const problem = problemOfClientError(error);
      if (problem === undefined) socket.destroy();
      else connections.get(socket)?.end(rawProblem(problem));
    });
    // A client that closes its side after its last request still gets the responses. Node's types lack this
    // option.
    Object.assign(server, { httpAllowHalfOpen: true });
    // No limit: a held request must keep all of its headers. Their size is limited.
    server.maxHeadersCount = 0;
    server.on('connection', (socket) => {
      connections.add(socket);
      stopAtHeldRequests(socket);
    });
    server.on('upgrade', (request, socket, rest) => connections.get(socket)?.hold(request, rest));
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
    this.#server.closeIdleConnections();
    const late = setTimeout(() => this.connections.closeAll(), DRAIN_MS);
    await closed;
    clearTimeout(late);
    this.connections.stop();
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
