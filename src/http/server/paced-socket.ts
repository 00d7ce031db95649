import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { ClientActivity } from './client-activity.js';
import type { ServerTimeouts } from './timeouts.js';

/**
 * Maximum concurrent requests of one connection: several, so that pipelining saves round trips, but few, because each can
 * hold a whole response that the client does not read. Further requests of the connection wait unparsed.
 */
const MAX_IN_FLIGHT = 4;

/** The parser gets one request head at a time, or this many bytes of a longer one. */
const MAX_PIECE_BYTES = 4096;
const END_OF_HEAD = Buffer.from('\r\n\r\n');

/** Larger writes are split, so that a client that reads slowly makes progress between them. */
const MAX_WRITE_BYTES = 256 * 1024;

const NOTHING = Buffer.alloc(0);

/** Requests and connections so far. */
let arrivals = 0;

interface Chunk {
  chunk: Buffer | string;
  encoding: BufferEncoding;
}
type Done = (error?: Error | null) => void;

/**
 * A client connection, between its socket and Node's HTTP parser. Node parses all input of one read at once: up to 64 KB, or
 * thousands of pipelined requests. This stream passes on the head of one request at a time, while few requests of the
 * connection are in flight.
 */
export class PacedSocket extends Duplex {
  /** The number of its last request, or of the connection itself, counted over all connections. */
  lastRequest = ++arrivals;
  readonly #activity: ClientActivity;

  /** Input that the parser has not got, and whether the parser is ready for it. */
  #input: Buffer = NOTHING;
  #isWanted = false;
  /** Requests whose responses have not been written completely. */
  readonly #inFlight = new Set<ServerResponse>();
  /** Sent after the responses in flight, before this side is closed; undefined while requests are accepted. */
  #lastResponse: string | undefined;
  #lingering: NodeJS.Timeout | undefined;

  /** @param continueLater must call `continue` in a later iteration of the event loop. */
  constructor(
    private readonly socket: Socket,
    private readonly continueLater: (connection: PacedSocket) => void,
    private readonly timeouts: ServerTimeouts,
  ) {
    // While Node pauses it, it buffers a single piece.
    super({
      allowHalfOpen: true,
      decodeStrings: false,
      readableHighWaterMark: 1,
      writableHighWaterMark: MAX_WRITE_BYTES,
    });
    this.#activity = new ClientActivity(socket, timeouts);
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('end', () => this.continue());
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
    // Node removes its own listener from connections that it no longer parses.
    this.on('error', () => undefined);
  }

  /** The address of the client; undefined once it is disconnected. */
  get remoteAddress(): string | undefined {
    return this.socket.remoteAddress;
  }

  /** Whether nothing is in flight and no input waits. */
  get isQuiet(): boolean {
    return this.#inFlight.size === 0 && this.#input.length === 0;
  }

  /** Whether the app is working on a request. If not, the connection waits for its client, or to continue. */
  get isBusy(): boolean {
    for (const response of this.#inFlight) if (!response.writableEnded) return true;
    return false;
  }

  /** Bytes buffered in this process: unparsed requests, and responses that the kernel has not accepted. */
  get bufferedBytes(): number {
    let bytes = this.#input.length;
    // Includes what the socket holds of a response that is being sent.
    for (const response of this.#inFlight) bytes += response.writableLength;
    return bytes;
  }

  /**
   * Registers a request that the app is about to process. No more follow if it `isLast`, or if the connection has pipelined
   * for too long: the response then has `Connection: close`.
   * @returns false if the connection is closing: no response may be sent.
   */
  begin(response: ServerResponse, isLast: boolean): boolean {
    if (this.#lastResponse !== undefined) return false;
    this.lastRequest = ++arrivals;
    this.#inFlight.add(response);
    response.on('close', () => this.#finished(response));
    if (isLast || this.#activity.pipelinesTooLong()) {
      response.setHeader('Connection', 'close');
      this.#discardInput('');
    }
    return true;
  }

  /**
   * Closes the connection after the responses in flight, with one more response unless it is empty. A client that has sent
   * nothing gets none: browsers open connections in advance.
   */
  close(lastResponse: string): void {
    if (this.#lastResponse !== undefined) return;
    this.#discardInput(this.socket.bytesRead > 0 ? lastResponse : '');
    if (this.#inFlight.size === 0) this.end(this.#lastResponse);
  }

  /** Closes the connection at once, or after the responses in flight. */
  stop(): void {
    if (this.#inFlight.size === 0) this.destroy();
    else this.close('');
  }

  /** Disconnects the client at once. Unless the connection is idle, the kernel discards what the client has not read. */
  disconnect(): void {
    // libuv cannot reset a socket whose end is being sent.
    if (this.isQuiet || this.socket.writableEnded) this.destroy();
    else this.socket.resetAndDestroy();
  }

  /** Passes on the next piece of the input, if the parser is ready for it and few requests are in flight. */
  continue(): void {
    if (!this.#isWanted || this.#inFlight.size >= MAX_IN_FLIGHT) return;
    if (this.#input.length === 0) {
      // Node closes the connection when its input ends.
      if (this.socket.isPaused()) this.socket.resume();
      if (!this.socket.readableEnded) return;
      if (this.#inFlight.size === 0) this.push(null);
      return;
    }
    const end = this.#input.indexOf(END_OF_HEAD);
    const length = Math.min(end === -1 ? Infinity : end + END_OF_HEAD.length, MAX_PIECE_BYTES);
    const isAll = length >= this.#input.length;
    const piece = isAll ? this.#input : this.#input.subarray(0, length);
    this.#input = isAll ? NOTHING : this.#input.subarray(length);
    if (!isAll) this.#activity.pipelines();
    this.#isWanted = false;
    this.push(piece);
  }

  /** Without progress for this many milliseconds, `checkTimeout` emits `timeout`. */
  setTimeout(ms: number): this {
    this.#activity.setTimeout(ms);
    return this;
  }

  /** @param now `performance.now()`. */
  checkTimeout(now: number): void {
    if (this.#activity.isOver(now)) this.emit('timeout');
  }

  override _read(): void {
    this.#isWanted = true;
    this.#continueSoon();
  }

  override _write(chunk: Chunk['chunk'], encoding: BufferEncoding, done: Done): void {
    if (chunk.length <= MAX_WRITE_BYTES) this.socket.write(chunk, encoding, done);
    else {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;
      this._write(bytes.subarray(0, MAX_WRITE_BYTES), encoding, (error) => {
        if (error) done(error);
        else this._write(bytes.subarray(MAX_WRITE_BYTES), encoding, done);
      });
    }
  }

  override _writev([{ chunk, encoding }, ...rest]: [Chunk, ...Chunk[]], done: Done): void {
    if (rest.length === 0) this._write(chunk, encoding, done);
    else if (chunk.length > MAX_WRITE_BYTES) {
      this._write(chunk, encoding, (error) => {
        if (error) done(error);
        else this._writev(rest as [Chunk, ...Chunk[]], done);
      });
    } else {
      this.socket.cork();
      this.socket.write(chunk, encoding);
      this._writev(rest as [Chunk, ...Chunk[]], done);
      this.socket.uncork();
    }
  }

  override _final(done: Done): void {
    this.#discardInput('');
    this.socket.end(() => {
      this.setTimeout(0);
      this.#lingering = setTimeout(() => this.destroy(), this.timeouts.linger);
      done();
    });
  }

  override _destroy(error: Error | null, done: Done): void {
    clearTimeout(this.#lingering);
    // A response that failed must not look like one that ends with the connection, as those to HTTP/1.0 do.
    if (error === null || this.socket.destroyed || this.socket.writableEnded) this.socket.destroy();
    else this.socket.resetAndDestroy();
    done(error);
  }

  #receive(chunk: Buffer): void {
    if (this.#lastResponse !== undefined) return;
    const isFirst = this.#input.length === 0;
    this.#input = isFirst ? chunk : Buffer.concat([this.#input, chunk]);
    if (isFirst) this.continue();
    if (this.#input.length > 0) this.socket.pause();
  }

  /** Accepts no more requests. */
  #discardInput(lastResponse: string): void {
    this.#lastResponse ??= lastResponse;
    this.#input = NOTHING;
    this.socket.resume();
  }

  #finished(response: ServerResponse): void {
    this.#inFlight.delete(response);
    if (this.#inFlight.size > 0) return;
    if (this.#lastResponse !== undefined) {
      // Node has ended the connection if this response had `Connection: close`.
      if (this.writable) this.end(this.#lastResponse);
      return;
    }
    // Node has set its own timeout before.
    if (this.isQuiet) this.#activity.pauses();
    this.#continueSoon();
  }

  /** Waiting input gives way to that of other connections. */
  #continueSoon(): void {
    if (this.#input.length > 0) this.continueLater(this);
    else this.continue();
  }
}
