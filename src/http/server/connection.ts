import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hasBody, headOf, MAX_IN_FLIGHT, type TurnQueue } from './pipelining.js';

/** Timeouts of a connection, in milliseconds. */
export const CONNECTION_TIMEOUTS = {
  /**
   * A client with unread responses must read `MIN_PROGRESS_BYTES` within this time, or its connection is reset.
   * Also the maximum time that pipelined requests wait.
   */
  unread: 20_000,
  /**
   * Idle timeout of a connection that has pipelined. The kernel may still buffer megabytes of unread responses; only
   * closing the connection shows whether the client reads them. Proxies need a longer idle timeout, but do not
   * pipeline.
   */
  pipelinedIdle: 10_000,
  /**
   * How long a client may take to close its side after the server has closed its own. Until then its input is
   * discarded, so that it receives the last response; then the connection is reset.
   */
  linger: 5_000,
};
export type ConnectionTimeouts = Readonly<typeof CONNECTION_TIMEOUTS>;

/** A client that reads less than half a kilobyte per second counts as not reading. */
const MIN_PROGRESS_BYTES = 10 * 1024;

/** Clients that have not read for this time are evicted first, in milliseconds. */
const UNREAD_GRACE_MS = 1_000;

/** How long a new client may take to send its first request before it can be evicted, in milliseconds. */
export const NEW_MS = 20;

/** Ranks of connections, the least useful first: the order of eviction. */
const RANKS = ['unread', 'unused', 'pipelining', 'idle', 'reading', 'new', 'active'] as const;

export interface Usefulness {
  rank: (typeof RANKS)[number];
  /** When the connection got this rank, by `performance.now()`. */
  since: number;
}

/** Sorts by rank, the least useful first, then by time in the rank, the longest first. */
export function compareUsefulness(a: Usefulness, b: Usefulness): number {
  return RANKS.indexOf(a.rank) - RANKS.indexOf(b.rank) || a.since - b.since;
}

/** One client connection: decides when its requests are processed, and tracks whether the client reads. */
export class Connection {
  readonly #socket: Socket;
  readonly #turns: TurnQueue;
  readonly #attach: (socket: Socket) => void;
  readonly #timeouts: ConnectionTimeouts;
  readonly #openedAt = performance.now();

  /** Responses that the kernel has not accepted completely. */
  readonly #inFlight = new Set<ServerResponse>();
  #isUsed = false;
  #idleSince = this.#openedAt;

  /** Whether a request is held in the socket's buffer. */
  #isHeld = false;
  /** Start of the wait, and the bytes received by then. The wait restarts once these are processed. */
  #heldSince: number | undefined;
  #receivedThen = 0;
  #hasPipelined = false;

  /** Whether the next request is the last one, because its body is not read. */
  #isNextLast = false;
  /** The final response of the connection, sent after those in flight; empty to close without one. */
  #lastResponse: string | undefined;
  #endedAt: number | undefined;

  /** When the client last made progress of `MIN_PROGRESS_BYTES`, and the bytes sent by then. */
  #unreadSince: number | undefined;
  #sentThen = 0;

  /** @param attach returns the socket to the HTTP parser. */
  constructor(
    socket: Socket,
    turns: TurnQueue,
    attach: (socket: Socket) => void,
    timeouts: ConnectionTimeouts,
  ) {
    this.#socket = socket;
    this.#turns = turns;
    this.#attach = attach;
    this.#timeouts = timeouts;
  }

  /**
   * Whether a new request must be held, because earlier ones are in flight or because it has a body. If so,
   * pauses the socket.
   */
  mustHold(request: IncomingMessage): boolean {
    if (this.#lastResponse !== undefined) return true;
    if (this.#inFlight.size > 0) this.#hasPipelined = true;
    if (this.#mayBegin(request)) return false;
    // Also stops a parser that reads from the socket's handle directly.
    this.#socket.pause();
    return true;
  }

  #mayBegin(request: IncomingMessage): boolean {
    if (hasBody(request)) return false;
    if (this.#inFlight.size === 0) return true;
    // Node would write `100 Continue` into the middle of a response in flight.
    const expectsContinue = request.headers.expect !== undefined;
    return !expectsContinue && this.#inFlight.size < MAX_IN_FLIGHT && this.#turns.take();
  }

  /**
   * Puts a request and the bytes after its headers back into the socket's buffer until earlier responses are
   * complete. A request with a body is put back without it and is the last one of its connection: no endpoint
   * accepts a body, and parsing a body byte by byte costs a thousand times more than sending it.
   */
  hold(request: IncomingMessage, rest: Buffer): void {
    const socket = this.#socket;
    if (this.#lastResponse !== undefined) {
      // The last response is already set. Without a listener, further input is discarded.
      socket.resume();
      return;
    }
    this.#isHeld = true;
    // Node resets the stream's flow state for an upgrade.
    socket.pause();
    socket.on('data', this.#putBack);
    if (hasBody(request)) this.#isNextLast = true;
    else if (rest.length > 0) socket.unshift(rest);
    socket.unshift(headOf(request));
    if (this.#inFlight.size === 0) this.#turns.add(this.#resume);
    if (this.#heldSince === undefined || socket.bytesRead - socket.readableLength >= this.#receivedThen) {
      this.#heldSince = performance.now();
      this.#receivedThen = socket.bytesRead;
    }
  }

  /** Registers a request whose processing begins. */
  begin(response: ServerResponse): void {
    this.#isUsed = true;
    this.#inFlight.add(response);
    response.on('close', () => this.#finished(response));
    if (!this.#isNextLast) return;
    response.shouldKeepAlive = false;
    this.#lastResponse = '';
    // Node would destroy the socket after the last response. While a body arrives, that is a reset, and the
    // client loses the response.
    this.#socket.destroySoon = () => this.#socket.end();
  }

  /**
   * Ends the connection with one more response, after those in flight. A client that has sent nothing gets
   * none: browsers open connections in advance.
   */
  end(response: string): void {
    if (this.#lastResponse !== undefined) return;
    this.#lastResponse = this.#socket.bytesRead > 0 ? response : '';
    if (this.#inFlight.size === 0) this.#finish(performance.now());
  }

  /** Bytes buffered in this process: unparsed requests, and responses that the kernel does not accept. */
  get bufferedBytes(): number {
    let bytes = this.#socket.readableLength;
    for (const response of this.#inFlight) bytes += response.writableLength;
    return bytes;
  }

  /**
   * Whether the connection must be closed. Ends an idle one that has pipelined. Call several times a second.
   */
  isOverdue(now: number): boolean {
    if (this.#endedAt !== undefined) return now - this.#endedAt >= this.#timeouts.linger;
    this.#watchProgress(now);
    const isIdle = this.#isIdle && now - this.#idleSince >= this.#timeouts.pipelinedIdle;
    if (isIdle && this.#hasPipelined) this.#finish(now);
    return now - (this.#waitsSince() ?? now) >= this.#timeouts.unread;
  }

  /** The current rank. */
  usefulness(now: number): Usefulness {
    if (this.#endedAt !== undefined) return { rank: 'unread', since: this.#endedAt };
    this.#watchProgress(now);
    const since = this.#waitsSince();
    if (since !== undefined && now - since >= UNREAD_GRACE_MS) return { rank: 'unread', since };
    // Clients that pipeline more requests than are processed at a time could occupy all connections. Proxies
    // rarely pipeline that many.
    if (this.#heldSince !== undefined) return { rank: 'pipelining', since: this.#heldSince };
    if (since !== undefined) return { rank: 'reading', since };
    if (!this.#isIdle) return { rank: 'active', since: now };
    if (!this.#isUsed) {
      const since = this.#openedAt;
      return { rank: now - since >= NEW_MS ? 'unused' : 'new', since };
    }
    return { rank: 'idle', since: this.#idleSince };
  }

  /**
   * Closes the connection at once. Resets it unless it is idle, so that the kernel discards unread responses.
   */
  close(): void {
    const socket = this.#socket;
    const isIdle = this.#isIdle && this.#endedAt === undefined;
    // A reset between `end()` and the last byte is an error.
    const isEnding = socket.writableEnded && !socket.writableFinished;
    if (isIdle || isEnding) socket.destroy();
    else socket.resetAndDestroy();
  }

  /** Start of the longest wait: of responses for the client, or of requests for their turn. */
  #waitsSince(): number | undefined {
    if (this.#unreadSince === undefined || this.#heldSince === undefined)
      return this.#unreadSince ?? this.#heldSince;
    return Math.min(this.#unreadSince, this.#heldSince);
  }

  #watchProgress(now: number): void {
    if (this.#socket.writableLength === 0) {
      this.#unreadSince = undefined;
      return;
    }
    const sent = bytesSent(this.#socket);
    if (this.#unreadSince !== undefined && sent - this.#sentThen < MIN_PROGRESS_BYTES) return;
    this.#unreadSince = now;
    this.#sentThen = sent;
  }

  get #isIdle(): boolean {
    return this.#inFlight.size === 0 && !this.#isHeld;
  }

  #finished(response: ServerResponse): void {
    this.#inFlight.delete(response);
    if (this.#inFlight.size > 0) return;
    this.#idleSince = performance.now();
    if (this.#lastResponse !== undefined) this.#finish(this.#idleSince);
    else if (this.#isHeld) this.#turns.add(this.#resume);
    else this.#heldSince = undefined;
  }

  readonly #resume = (): void => {
    const socket = this.#socket;
    if (socket.destroyed) return;
    this.#isHeld = false;
    socket.off('data', this.#putBack);
    this.#attach(socket);
    socket.resume();
  };

  /** Node resumes the socket after each response; input that arrives then must still wait. */
  readonly #putBack = (chunk: Buffer): void => {
    this.#socket.pause();
    this.#socket.unshift(chunk);
  };

  /** Closes this side, and discards input until the client closes its side. */
  #finish(now: number): void {
    const socket = this.#socket;
    this.#endedAt = now;
    // The last response in flight may have closed it.
    if (socket.writable) socket.end(this.#lastResponse ?? '');
    socket.resume();
  }
}

/** Bytes that the kernel has accepted. `socket.bytesWritten` includes bytes that are still buffered. */
function bytesSent(socket: Socket): number {
  // Node's inactivity timeout uses the same two numbers to detect the progress of a long write.
  const { _handle: handle } = socket as unknown as {
    _handle: { bytesWritten: number; writeQueueSize: number } | null;
  };
  return handle === null ? socket.bytesWritten : handle.bytesWritten - handle.writeQueueSize;
}
