import { once } from 'node:events';
import { createServer, STATUS_CODES, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { problemBody } from '../problem.js';

/** The start line and all headers of a request, in bytes. */
const MAX_HEADER_BYTES = 16 * 1024;

/** For so long a client may take to send its headers, or its whole request, in milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** How often that is looked at, in milliseconds. */
const CHECK_MS = 1_000;
/** An idle connection is kept longer than the usual proxy keeps it, so that none is closed under a request. */
const KEEP_ALIVE_MS = 75_000;

/** What is wrong with bytes that are no request, by the error code of Node's HTTP parser. */
const MALFORMED: Record<string, [status: number, detail: string]> = {
  HPE_HEADER_OVERFLOW: [431, `the address and the headers must have at most ${MAX_HEADER_BYTES} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request did not arrive in time'],
};

/** How long requests under way may take to finish when the server stops, in milliseconds. */
const DRAIN_MS = 8_000;

/**
 * An HTTP server that waits for nobody for long, and says what is wrong with what is no request: those never reach the
 * app, and get a problem (RFC 9457) of their own.
 */
export class HttpServer {
  readonly #server: Server;

  constructor(respond: RequestListener) {
    const options = {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    };
    this.#server = createServer(options, respond).on('clientError', answerMalformed);
  }

  /** @returns its address, such as `http://127.0.0.1:3000`. @throws what `listen` throws, such as EADDRINUSE. */
  async listen(port: number, host: string): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    return urlOf(this.#server.address() as AddressInfo);
  }

  /** Accepts no more connections, and lets the requests under way finish. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeIdleConnections();
    const late = setTimeout(() => this.#server.closeAllConnections(), DRAIN_MS);
    await closed;
    clearTimeout(late);
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
