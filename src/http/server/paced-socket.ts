import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
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

/** A client is reading slowly if the kernel accepts a write only after this time, in milliseconds. */
const SLOW_MS = 1_000;

const NOTHING = Buffer.alloc(0);
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
  /** When its last request arrived, or the connection itself, by `performance.now()`. */
  lastRequestAt = performance.now();
  readonly #socket: Socket;
  readonly #continueLater: (connection: PacedSocket) => void;
  readonly #timeouts: ServerTimeouts;

  /** Input that the parser has not got, and whether the parser is ready for it. */
  #input: Buffer = NOTHING;
  #isWanted = false;
  /** Requests whose responses have not been written completely. */
  readonly #inFlight = new Set<ServerResponse>();
  #hasPipelined = false;
  /** Since when it has pipelined without a pause, and without waiting for the client to read. */
  #pipeliningSince: number | undefined;
  /** Sent after the responses in flight, before this side is closed; undefined while requests are accepted. */
  #lastResponse: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #minTimeoutMs = 0;

  /** @param continueLater must call `continue` in a later iteration of the event loop. */
  constructor(socket: Socket, continueLater: (connection: PacedSocket) => void, timeouts: ServerTimeouts) {
    // While Node pauses it, it buffers a single piece.
    super({ allowHalfOpen: true, decodeStrings: false, readableHighWaterMark: 1 });
    this.#socket = socket;
    this.#continueLater = continueLater;
    this.#timeouts = timeouts;
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('end', () => this.continue());
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
    // Node removes its own listener from connections that it no longer parses.
    this.on('error', () => undefined);
  }

  /** The address of the client; undefined once it is disconnected. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** Whether nothing is in flight and no input waits. */
  get isIdle(): boolean {
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
    const now = performance.now();
    this.lastRequestAt = now;
    this.#inFlight.add(response);
    response.on('close', () => this.#finished(response));
    if (isLast || now - (this.#pipeliningSince ?? now) >= this.#timeouts.pipelinedIdle) {
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
    this.#discardInput(this.#socket.bytesRead > 0 ? lastResponse : '');
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
    if (this.isIdle || this.#socket.writableEnded) this.destroy();
    else this.#socket.resetAndDestroy();
  }

  /** Passes on the next piece of the input, if the parser is ready for it and few requests are in flight. */
  continue(): void {
    if (!this.#isWanted || this.#inFlight.size >= MAX_IN_FLIGHT) return;
    if (this.#input.length === 0) {
      // Node closes the connection when its input ends.
      if (!this.#socket.readableEnded) this.#socket.resume();
      else if (this.#inFlight.size === 0) this.push(null);
      return;
    }
    const end = this.#input.indexOf(END_OF_HEAD);
    const length = Math.min(end === -1 ? Infinity : end + END_OF_HEAD.length, MAX_PIECE_BYTES);
    const piece = this.#input.subarray(0, length);
    this.#input = this.#input.subarray(length);
    if (this.#input.length > 0) {
      this.#hasPipelined = true;
      this.#pipeliningSince ??= performance.now();
    }
    this.#isWanted = false;
    this.push(piece);
  }

  /** Emits `timeout` after this many milliseconds without progress. A client that pipelines must have read something. */
  setTimeout(ms: number): this {
    clearTimeout(this.#timer);
    const spent = this.#pipeliningSince === undefined ? 0 : performance.now() - this.#pipeliningSince;
    this.#timer = setTimeout(() => this.emit('timeout'), Math.max(ms - spent, this.#minTimeoutMs)).unref();
    return this;
  }

  override _read(): void {
    this.#isWanted = true;
    this.#continueSoon();
  }

  override _write(chunk: Chunk['chunk'], encoding: BufferEncoding, done: Done): void {
    if (chunk.length > MAX_WRITE_BYTES) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;
      this._write(bytes.subarray(0, MAX_WRITE_BYTES), encoding, (error) => {
        if (error) done(error);
        else this._write(bytes.subarray(MAX_WRITE_BYTES), encoding, done);
      });
      return;
    }
    const began = performance.now();
    this.#socket.write(chunk, encoding, (error) => {
      const now = performance.now();
      if (now - began >= SLOW_MS) {
        this.#pipeliningSince &&= now;
        this.setTimeout((this.#minTimeoutMs = 1.5 * this.#timeouts.unread));
      } else if (this.#pipeliningSince === undefined) this.#timer?.refresh();
      done(error);
    });
  }

  override _writev([{ chunk, encoding }, ...rest]: [Chunk, ...Chunk[]], done: Done): void {
    const writeRest = () => this._writev(rest as [Chunk, ...Chunk[]], done);
    this.#socket.cork();
    if (rest.length === 0) this._write(chunk, encoding, done);
    else if (chunk.length > MAX_WRITE_BYTES) {
      this._write(chunk, encoding, (error) => (error ? done(error) : writeRest()));
    } else {
      this.#socket.write(chunk, encoding);
      writeRest();
    }
    this.#socket.uncork();
  }

  override _final(done: Done): void {
    this.#discardInput('');
    this.#socket.end(() => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.destroy(), this.#timeouts.linger);
      done();
    });
  }

  override _destroy(error: Error | null, done: Done): void {
    clearTimeout(this.#timer);
    this.#socket.destroy();
    done(error);
  }

  #receive(chunk: Buffer): void {
    if (this.#lastResponse !== undefined) return;
    if (this.#pipeliningSince === undefined) this.#timer?.refresh();
    const isFirst = this.#input.length === 0;
    this.#input = isFirst ? chunk : Buffer.concat([this.#input, chunk]);
    if (isFirst) this.continue();
    if (this.#input.length > 0) this.#socket.pause();
  }

  /** Accepts no more requests. */
  #discardInput(lastResponse: string): void {
    this.#lastResponse ??= lastResponse;
    this.#input = NOTHING;
    this.#socket.resume();
  }

  #finished(response: ServerResponse): void {
    this.#inFlight.delete(response);
    if (this.#inFlight.size > 0) return;
    if (this.#lastResponse !== undefined) {
      // Node has ended the connection if this response had `Connection: close`.
      if (this.writable) this.end(this.#lastResponse);
      return;
    }
    if (this.isIdle) {
      this.#pipeliningSince = undefined;
      if (this.#hasPipelined) this.setTimeout(this.#timeouts.pipelinedIdle);
    }
    this.#continueSoon();
  }

  /** Waiting input gives way to that of other connections. */
  #continueSoon(): void {
    if (this.#input.length > 0) this.#continueLater(this);
    else this.continue();
  }
}
