import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hasBody, headOf, MAX_IN_FLIGHT, type TurnQueue } from './pipelining.js';

/**
 * A client that has responses to read must take `MIN_PROGRESS_BYTES` of them in this time, or its connection is reset.
 * Also the longest time for which pipelined requests wait for their turn. In milliseconds.
 */
const UNREAD_TIMEOUT_MS = 20_000;
/** Less than half a kilobyte a second is no reader. */
const MIN_PROGRESS_BYTES = 10 * 1024;

/**
 * An idle connection that has pipelined is closed after this time, in milliseconds. The kernel may still hold megabytes
 * of responses that the client does not read, which only the client's reaction to the end shows; proxies, for which idle
 * connections are kept longer, do not pipeline.
 */
const PIPELINED_IDLE_MS = 10_000;

/**
 * How long a client may take to close its side of a connection that was ended, in milliseconds. What it sends until then
 * is read and discarded, so that it receives the last response; then the connection is reset.
 */
const LINGER_MS = 5_000;

/** A client that has not read for this time is evicted first, in milliseconds. */
const UNREAD_GRACE_MS = 1_000;

/** How long a client that has just connected has to send its first request before it may be evicted, in milliseconds. */
export const NEW_MS = 20;

/** How useful a connection is, the least useful first: the order in which connections are evicted. */
const RANKS = ['unread', 'unused', 'pipelining', 'idle', 'reading', 'new', 'active'] as const;

export interface Usefulness {
  rank: (typeof RANKS)[number];
  /** Since when, by `performance.now()`. */
  since: number;
}

/** Sorts the least useful connection first: by rank, then the one that has been in it the longest. */
export function compareUsefulness(a: Usefulness, b: Usefulness): number {
  return RANKS.indexOf(a.rank) - RANKS.indexOf(b.rank) || a.since - b.since;
}

/** One connection of a client: which of its requests are processed, and whether it reads the responses. */
export class Connection {
  readonly #socket: Socket;
  readonly #turns: TurnQueue;
  readonly #attach: (socket: Socket) => void;
  readonly #openedAt = performance.now();

  /** Responses that the kernel has not taken whole. */
  readonly #inFlight = new Set<ServerResponse>();
  #isUsed = false;
  #idleSince = this.#openedAt;

  /** Whether input waits in the socket's buffer. */
  #isHeld = false;
  /** Since when some of it has waited, and how much there had been on the connection then. */
  #heldSince: number | undefined;
  #receivedThen = 0;
  #hasPipelined = false;

  /** Whether the next request that begins is the last one, because its body is not read. */
  #isNextLast = false;
  /** The last response, if something has come that no response can follow; it waits for those in flight. */
  #lastResponse: string | undefined;
  #endedAt: number | undefined;

  /** Since when the client has taken less than `MIN_PROGRESS_BYTES`, and how much it had taken then. */
  #unreadSince: number | undefined;
  #sentThen = 0;

  /** @param attach gives the socket to the HTTP parser again. */
  constructor(socket: Socket, turns: TurnQueue, attach: (socket: Socket) => void) {
    this.#socket = socket;
    this.#turns = turns;
    this.#attach = attach;
  }

  /**
   * Whether a request that has just arrived must be held: until those before it are answered, or because it has a body.
   * Stops reading if so.
   */
  mustHold(request: IncomingMessage): boolean {
    if (this.#lastResponse !== undefined) return true;
    if (this.#inFlight.size > 0) this.#hasPipelined = true;
    if (this.#mayBegin(request)) return false;
    // While the parser still reads the socket itself, this stops it at once.
    this.#socket.pause();
    return true;
  }

  #mayBegin(request: IncomingMessage): boolean {
    if (hasBody(request)) return false;
    if (this.#inFlight.size === 0) return true;
    // Behind another response, Node would write `100 Continue` into the middle of this one.
    const expectsContinue = request.headers.expect !== undefined;
    return !expectsContinue && this.#inFlight.size < MAX_IN_FLIGHT && this.#turns.take();
  }

  /**
   * Puts a request back into the socket's buffer until those before it are answered, with the bytes after its headers.
   * No endpoint takes a body, and parsing one byte by byte costs a thousand times what sending it costs: a request with a
   * body is put back without it, and is the last one of its connection.
   */
  hold(request: IncomingMessage, rest: Buffer): void {
    const socket = this.#socket;
    if (this.#lastResponse !== undefined) {
      // The last response is decided already. Without a listener, further input is discarded.
      socket.resume();
      return;
    }
    this.#isHeld = true;
    // The server has reset the state of the stream.
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

  /** Counts a request whose processing begins. */
  begin(response: ServerResponse): void {
    this.#isUsed = true;
    this.#inFlight.add(response);
    response.on('close', () => this.#finished(response));
    if (!this.#isNextLast) return;
    response.shouldKeepAlive = false;
    this.#lastResponse = '';
    // Node would destroy the socket after the last response; while a body arrives, that is a reset, which loses the response.
    this.#socket.destroySoon = () => this.#socket.end();
  }

  /**
   * Ends the connection after the responses in flight, with one more response. There is none if the client has sent
   * nothing: browsers open connections in advance.
   */
  end(response: string): void {
    if (this.#lastResponse !== undefined) return;
    this.#lastResponse = this.#socket.bytesRead > 0 ? response : '';
    if (this.#inFlight.size === 0) this.#finish(performance.now());
  }

  /** Bytes that wait in this process: requests to be parsed, and responses that the kernel does not take. */
  get bufferedBytes(): number {
    let bytes = this.#socket.readableLength;
    for (const response of this.#inFlight) bytes += response.writableLength;
    return bytes;
  }

  /** Whether the connection must be closed; ends an idle one that has pipelined. To be called several times a second. */
  isOverdue(now: number): boolean {
    if (this.#endedAt !== undefined) return now - this.#endedAt >= LINGER_MS;
    this.#watchProgress(now);
    if (this.#isIdle && this.#hasPipelined && now - this.#idleSince >= PIPELINED_IDLE_MS) this.#finish(now);
    return now - (this.#waitsSince() ?? now) >= UNREAD_TIMEOUT_MS;
  }

  /** How useful it is now, to its client and to others. */
  usefulness(now: number): Usefulness {
    if (this.#endedAt !== undefined) return { rank: 'unread', since: this.#endedAt };
    this.#watchProgress(now);
    const since = this.#waitsSince();
    if (since !== undefined && now - since >= UNREAD_GRACE_MS) return { rank: 'unread', since };
    // A client that pipelines more requests than are processed at a time could take all connections; proxies hardly do that.
    if (this.#heldSince !== undefined) return { rank: 'pipelining', since: this.#heldSince };
    if (since !== undefined) return { rank: 'reading', since };
    if (!this.#isIdle) return { rank: 'active', since: now };
    if (!this.#isUsed) {
      const since = this.#openedAt;
      return { rank: now - since >= NEW_MS ? 'unused' : 'new', since };
    }
    return { rank: 'idle', since: this.#idleSince };
  }

  /** Closes the connection at once. Unless it is idle it is reset, so that the kernel discards unread responses, too. */
  close(): void {
    const socket = this.#socket;
    const isIdle = this.#isIdle && this.#endedAt === undefined;
    // A reset between the end of the writing side and its last byte is an error.
    const isEnding = socket.writableEnded && !socket.writableFinished;
    if (isIdle || isEnding) socket.destroy();
    else socket.resetAndDestroy();
  }

  /** Since when responses wait for the client, or its requests for their turn. */
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

  /** A request that is finished resumes its socket: what flows then has to wait all the same. */
  readonly #putBack = (chunk: Buffer): void => {
    this.#socket.pause();
    this.#socket.unshift(chunk);
  };

  /** Closes this side, and waits for the client to close its side: what it still sends is discarded. */
  #finish(now: number): void {
    const socket = this.#socket;
    this.#endedAt = now;
    // The last response in flight may have closed it.
    if (socket.writable) socket.end(this.#lastResponse ?? '');
    socket.resume();
  }
}

/** Bytes that the kernel has taken. The socket's own count has those that wait for it, too. */
function bytesSent(socket: Socket): number {
  // The same two numbers by which the socket's own inactivity timeout sees that a long write makes progress.
  const { _handle: handle } = socket as unknown as {
    _handle: { bytesWritten: number; writeQueueSize: number } | null;
  };
  return handle === null ? socket.bytesWritten : handle.bytesWritten - handle.writeQueueSize;
}
