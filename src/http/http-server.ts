import { once } from 'node:events';
import { createServer, STATUS_CODES, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { problemBody } from '../problem.js';
import { ConnectionLimits } from './connection-limits.js';
import { sendProblem } from './direct-response.js';
import { heldRequestClass } from './pipelining.js';
import { checkRequest } from './request-check.js';
import { requestIdOf } from './request-id.js';

/** The start line and all headers of a request, in bytes. */
const MAX_HEADER_BYTES = 16 * 1024;

/** How long a client may take to send its headers, or its whole request, in milliseconds. A slower one is answered 408. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** How often Node checks these, in milliseconds. */
const CHECK_MS = 1_000;
/** An idle connection is kept longer than the usual proxy keeps it, so that none is closed while a request is sent. */
const KEEP_ALIVE_MS = 75_000;

/** Bytes that are read ahead for a connection whose requests wait; a chunk of up to 64 KB may come on top. */
const READ_AHEAD_BYTES = 16 * 1024;

/** What is wrong with bytes that are no request, by the error code of Node's HTTP parser. */
const MALFORMED: Record<string, [status: number, detail: string]> = {
  HPE_HEADER_OVERFLOW: [431, `the address and the headers must have at most ${MAX_HEADER_BYTES} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request did not arrive in time'],
};

/** How long requests in flight may take to finish when the server stops, in milliseconds. */
const DRAIN_MS = 8_000;

/**
 * An HTTP server with timeouts, a bounded number of connections, and bounded memory for each of them. What is no request
 * never reaches the app, and is answered with a problem (RFC 9457).
 */
export class HttpServer {
  readonly connections: ConnectionLimits;
  readonly #server: Server;

  /** @param maxConnections that may be open at a time. */
  constructor(respond: RequestListener, maxConnections: number) {
    const connections = new ConnectionLimits(maxConnections, (socket) => {
      server.emit('connection', socket);
    });
    const options = {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      highWaterMark: READ_AHEAD_BYTES,
      IncomingMessage: heldRequestClass((socket) => connections.get(socket)?.mustWait() ?? false),
    };
    const server = createServer(options, (request, response) => {
      connections.get(request.socket)?.begin(response);
      const problem = checkRequest(request);
      if (problem === undefined) respond(request, response);
      else sendProblem(response, problem, requestIdOf(request));
    });
    // A client that has closed its side after its last request gets the responses all the same; Node's types lack this.
    Object.assign(server, { httpAllowHalfOpen: true });
    // A request that is held must keep all of its headers; their size is limited.
    server.maxHeadersCount = 0;
    server.on('connection', (socket) => connections.add(socket));
    server.on('upgrade', (request, socket, rest) => connections.get(socket)?.hold(request, rest));
    server.on('clientError', answerMalformed);
    this.connections = connections;
    this.#server = server;
  }

  /** @returns its address, such as `http://127.0.0.1:3000`. @throws what `listen` throws, such as EADDRINUSE. */
  async listen(port: number, host: string): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    this.connections.start();
    return urlOf(this.#server.address() as AddressInfo);
  }

  /** Accepts no more connections, and lets the requests in flight finish. */
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

function answerMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, detail] = MALFORMED[error.code ?? ''] ?? [400, 'this is not a well-formed HTTP request'];
  socket.end(malformed(status, detail));
}

function malformed(status: number, detail: string): string {
  const body = JSON.stringify(problemBody(status, 'invalid_parameter', detail));
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
