import { once } from 'node:events';
import { createServer, ServerResponse, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** Timeouts of clients, in milliseconds. */
export const SERVER_TIMEOUTS = {
  /** Maximum time for the head of a request, and for the whole request. Node responds with 408. */
  headers: 10_000,
  request: 15_000,
  /**
   * A connection is closed if neither side makes progress for this time. The kernel accepts more of a response once a
   * third of the send buffer is free (on Linux 1.4 MB of 4 MB). A client that reads 60 KB/s frees a third in 18 to 28
   * s.
   */
  inactive: 40_000,
  /** Of idle connections. Must exceed that of the proxy, which may otherwise send a request while this side closes. */
  keepAlive: 75_000,
  /** How long requests in flight may take to finish when the server stops. */
  drain: 8_000,
};

/** Interval in which Node checks the timeouts of requests, in milliseconds. */
const CHECK_MS = 1_000;

/** Node rejects malformed requests. A proxy in front of the server must protect clients from each other. */
export class HttpServer {
  /** Number of connections closed so far because too many were open. */
  refused = 0;
  readonly #open = new Set<Socket>();
  readonly #server: Server;

  /** @param maxConnections maximum number of open connections. Further connections are closed immediately. */
  constructor(
    serve: RequestListener,
    readonly maxConnections: number,
    private readonly timeouts = SERVER_TIMEOUTS,
  ) {
    const isStopping = () => !this.#server.listening;
    const options = {
      headersTimeout: timeouts.headers,
      requestTimeout: timeouts.request,
      connectionsCheckingInterval: Math.min(CHECK_MS, timeouts.headers),
      keepAliveTimeout: timeouts.keepAlive,
      ServerResponse: class extends ServerResponse {
        /** Makes each response the last one of its connection once the server stops. */
        override writeHead(status: number, ...head: [never?, never?]): this {
          if (isStopping()) this.setHeader('Connection', 'close');
          return super.writeHead(status, ...head);
        }
      },
    };
    const server = createServer(options, serve);
    server.timeout = timeouts.inactive;
    server.maxConnections = maxConnections;
    // No limit on the number of headers, which could hide the `X-Forwarded-For` that a proxy appends. Node limits their
    // size to 16 KB.
    server.maxHeadersCount = 0;
    server.on('connection', (socket) => {
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
    server.on('drop', () => this.refused++);
    this.#server = server;
  }

  get open(): number {
    return this.#open.size;
  }

  /** @returns the address, such as `http://127.0.0.1:3000`. @throws errors of `listen`, such as EADDRINUSE. */
  async listen(port: number, host: string): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    const { address, family, port: bound } = this.#server.address() as AddressInfo;
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
  }

  /** Closes idle connections, and waits for the requests in flight, at most for `timeouts.drain`. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    const late = setTimeout(() => {
      // Not `closeAllConnections`: only a reset shows an HTTP/1.0 client that its response is cut off.
      for (const socket of this.#open) socket.resetAndDestroy();
    }, this.timeouts.drain);
    await closed;
    clearTimeout(late);
  }
}
