import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Socket, type AddressInfo } from 'node:net';
import { checkRequest, connectNotAllowed, problemOfClientError } from './malformed-request.js';
import { Problem } from '../problems/problem.js';
import { rawProblem } from '../response/problem-response.js';
import { SERVER_TIMEOUTS, type ServerTimeouts } from './timeouts.js';

/** Interval in which Node checks the timeouts of requests, in milliseconds. */
const CHECK_MS = 1_000;

/**
 * Maximum number of pipelined requests in flight, over all connections. Each takes about 8 KB until the client has read
 * the earlier responses. Proxies and browsers do not pipeline.
 */
const MAX_PIPELINED = 4096;

/** A connection to a client. */
interface Connection {
  /** The response to the last request of the connection. */
  response?: ServerResponse;
  /** Whether no more requests are accepted. */
  isClosing: boolean;
}

/**
 * Node's HTTP server with timeouts and a bounded number of connections. Invalid requests do not reach the app and get a
 * problem (RFC 9457). A proxy in front of the server must protect clients from each other.
 */
export class HttpServer {
  /**
   * Number of connections closed so far. `unread`: a response was not sent completely in time. `refused`: there were
   * too many connections or pipelined requests.
   */
  readonly closed = { unread: 0, refused: 0 };
  readonly #open = new Map<Socket, Connection>();
  readonly #server: Server;
  #pipelined = 0;

  /** @param maxConnections maximum number of open connections. Further connections are closed immediately. */
  constructor(
    private readonly serve: RequestListener,
    readonly maxConnections: number,
    private readonly timeouts: ServerTimeouts = SERVER_TIMEOUTS,
  ) {
    const server = createServer({
      headersTimeout: timeouts.headers,
      requestTimeout: timeouts.request,
      connectionsCheckingInterval: Math.min(CHECK_MS, timeouts.headers),
      keepAliveTimeout: timeouts.keepAlive,
      // `checkRequest` rejects a missing Host with a problem.
      requireHostHeader: false,
    });
    server.timeout = timeouts.inactive;
    server.maxConnections = maxConnections;
    // No limit on the number of headers: `checkRequest` must find a repeated Host. Node limits their size to 16 KB.
    server.maxHeadersCount = 0;
    server.on('connection', (socket) => {
      this.#open.set(socket, { isClosing: false });
      socket.once('close', () => this.#open.delete(socket));
    });
    server.on('drop', () => this.closed.refused++);
    server.on('request', (request, response) => this.#handle(request, response));
    server.on('checkContinue', (request, response) => {
      // If an earlier response is still pending, Node would write `100 Continue` after the headers of this response.
      if (response.socket !== null) response.writeContinue();
      this.#handle(request, response);
    });
    server.on('checkExpectation', (request) => {
      this.#refuse(request.socket, checkRequest(request) ?? new Problem('expectation_failed'), request);
    });
    server.on('connect', (request) => this.#refuse(request.socket, connectNotAllowed(), request));
    server.on('clientError', (error, socket) => {
      if (socket instanceof Socket) this.#refuse(socket, problemOfClientError(error));
    });
    server.on('timeout', (socket: Socket) => this.#disconnect(socket));
    // `close` calls this method. Node's own method also closes connections whose clients are still reading a response.
    server.closeIdleConnections = () => {
      for (const [socket, { response, isClosing }] of this.#open) {
        // The last response tells the client that the connection closes. If `isClosing` is already set, a problem may
        // follow this response.
        if (response?.headersSent === false && !isClosing) response.setHeader('Connection', 'close');
        this.#close(socket);
      }
    };
    this.#server = server;
  }

  /** Number of open connections. */
  get open(): number {
    return this.#open.size;
  }

  /**
   * @returns the address of the server, such as `http://127.0.0.1:3000`.
   * @throws errors of `listen`, such as EADDRINUSE.
   */
  async listen(port: number, host: string): Promise<string> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    const { address, family, port: bound } = this.#server.address() as AddressInfo;
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
  }

  /** Stops accepting connections, and waits for the requests in flight, at most for `timeouts.drain`. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    const late = setTimeout(() => {
      for (const socket of this.#open.keys()) this.#disconnect(socket);
    }, this.timeouts.drain);
    await closed;
    clearTimeout(late);
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#open.get(socket);
    if (connection === undefined || connection.isClosing) return;
    // A response without a socket waits for an earlier response of the connection.
    const isPipelined = response.socket === null;
    if (isPipelined && this.#pipelined >= MAX_PIPELINED) {
      this.#refusePipelining(socket, connection);
      return;
    }
    const problem = checkRequest(request);
    if (problem !== undefined) {
      this.#refuse(socket, problem, request);
      return;
    }
    if (isPipelined) {
      this.#pipelined++;
      request.once('close', () => this.#pipelined--);
    }
    connection.response = response;
    this.serve(request, response);
  }

  /**
   * Closes a connection, and pauses the others until the end of this iteration of the event loop. Until then, the
   * requests that Node has parsed from one read of this connection stay in memory. Without the pause, each other
   * connection could add the requests of one read.
   */
  #refusePipelining(socket: Socket, connection: Connection): void {
    this.closed.refused++;
    connection.isClosing = true;
    socket.destroy();
    const others = [...this.#open.keys()].filter((other) => !other.isPaused());
    for (const other of others) other.pause();
    setImmediate(() => {
      for (const other of others) other.resume();
    });
  }

  /**
   * Waits for the responses in flight of a connection, sends a problem as the last response, and closes the connection.
   * @param problem undefined if the connection failed, which is then closed at once.
   * @param request undefined if the request could not be parsed.
   */
  #refuse(socket: Socket, problem: Problem | undefined, request?: IncomingMessage): void {
    const connection = this.#open.get(socket);
    if (problem === undefined || connection === undefined) socket.destroy();
    else if (!connection.isClosing) {
      // A browser that connects in advance and has sent nothing expects no response. If only the body of a request is
      // malformed or late, the app already responds to this request.
      const isExpected = socket.bytesRead > 0 && connection.response?.req.complete !== false;
      this.#close(socket, isExpected ? rawProblem(problem, request) : '');
      request?.resume();
    }
  }

  /**
   * Waits for the responses in flight of a connection, sends `lastResponse` unless it is empty, and closes the
   * connection.
   */
  #close(socket: Socket, lastResponse = ''): void {
    const connection = this.#open.get(socket);
    if (connection === undefined || connection.isClosing) return;
    connection.isClosing = true;
    const { response } = connection;
    if (response !== undefined && !response.writableFinished) {
      response.once('close', () => this.#end(socket, lastResponse));
    } else if (lastResponse === '') socket.destroy();
    else this.#end(socket, lastResponse);
  }

  /**
   * Ends this side of a connection. The client then has `timeouts.linger` to read the response and to close its side.
   */
  #end(socket: Socket, lastResponse: string): void {
    if (socket.writable) socket.end(lastResponse);
    setTimeout(() => socket.destroy(), this.timeouts.linger).unref();
  }

  /**
   * Disconnects a client. If a response is incomplete, the connection is reset, and the kernel discards unsent data.
   */
  #disconnect(socket: Socket): void {
    const response = this.#open.get(socket)?.response;
    if (response === undefined || response.writableFinished) socket.destroy();
    else {
      this.closed.unread++;
      socket.resetAndDestroy();
    }
  }
}
