import type { Socket } from 'node:net';
import { PacedSocket } from './paced-socket.js';
import type { ServerTimeouts } from './timeouts.js';

/**
 * Connections with waiting input that continue in one iteration of the event loop, each with one request: so much work that
 * an iteration takes one or two milliseconds, which delays requests of other connections little.
 */
const CONTINUED_AT_ONCE = 8;

/** Interval of the check of timeouts and buffered bytes, in milliseconds. For a thousand connections, it takes less than one. */
const CHECK_MS = 250;

/**
 * Maximum bytes buffered for clients, over all connections. Including garbage, a flood of unread responses lets the process
 * grow by up to 100 MB.
 */
const MAX_BUFFERED_BYTES = 40 * 2 ** 20;

/** How long a new client may take to send its first request before a connection is closed for it, in milliseconds. */
const NEW_MS = 20;

/** Connections allowed beyond the maximum meanwhile: the size of Node's listen backlog. */
export const BURST = 511;

/**
 * The connections of a server. Beyond the maximum, the longest idle ones are closed: those whose last request is the longest
 * ago, and that the app is not working for. If there are none, the newest connections are closed.
 */
export class Connections {
  /** Connections closed here so far: unread, evicted, or refused because none could be evicted. */
  readonly closed = { unread: 0, evicted: 0, refused: 0 };
  /** In the order of their arrival. */
  readonly #open = new Set<PacedSocket>();
  /** With input that the parser has not got, in the order in which they continue. */
  readonly #waiting = new Set<PacedSocket>();
  #isScheduled = false;
  #checking: NodeJS.Timeout | undefined;
  #makingRoom: NodeJS.Timeout | undefined;

  /** @param max maximum number of open connections; for 20 ms, up to 511 more. */
  constructor(
    readonly max: number,
    private readonly timeouts: ServerTimeouts,
  ) {}

  /** Number of open connections. */
  get open(): number {
    return this.#open.size;
  }

  /** Accepts a new socket. @returns its connection, for the HTTP parser. */
  add(socket: Socket): PacedSocket {
    const connection = new PacedSocket(socket, this.#continueLater, this.timeouts);
    this.#open.add(connection);
    connection.once('close', () => {
      this.#open.delete(connection);
      this.#waiting.delete(connection);
    });
    this.#makeRoomSoon();
    return connection;
  }

  /** Starts the periodic checks, which do not keep the process alive. */
  start(): void {
    this.#checking = setInterval(() => this.#check(), Math.min(CHECK_MS, this.timeouts.unread / 4)).unref();
  }

  /** Closes all connections: those with requests in flight after their responses, all others at once. */
  stop(): void {
    clearInterval(this.#checking);
    clearTimeout(this.#makingRoom);
    for (const connection of this.#open) connection.stop();
  }

  /** Closes every connection at once. */
  closeAll(): void {
    for (const connection of this.#open) connection.destroy();
  }

  /** Disconnects a client that has been inactive for too long. */
  closeInactive(connection: PacedSocket): void {
    if (connection.isQuiet) connection.destroy();
    else this.#disconnect(connection, 'unread');
  }

  #disconnect(connection: PacedSocket, reason: keyof Connections['closed']): void {
    this.closed[reason]++;
    this.#open.delete(connection);
    connection.disconnect();
  }

  /** Schedules the check of the maximum, after new clients have had time to send a request. */
  #makeRoomSoon(): void {
    if (this.open <= this.max) return;
    this.#makingRoom ??= setTimeout(() => {
      // If the event loop was blocked, timers run before pending input is read; `setImmediate` runs after it.
      setImmediate(() => {
        this.#makingRoom = undefined;
        this.#makeRoom();
      });
    }, NEW_MS);
  }

  #makeRoom(): void {
    const newest = [...this.#open].filter(({ isBusy }) => isBusy).reverse();
    const excess = this.open - this.max;
    for (const connection of [...this.#evictable(), ...newest].slice(0, Math.max(0, excess)))
      this.#disconnect(connection, connection.isBusy ? 'refused' : 'evicted');
  }

  #check(): void {
    const now = performance.now();
    for (const connection of this.#open) connection.checkTimeout(now);
    this.#limitBufferedBytes();
  }

  #limitBufferedBytes(): void {
    let bytes = 0;
    for (const { bufferedBytes } of this.#open) bytes += bufferedBytes;
    if (bytes <= MAX_BUFFERED_BYTES) return;
    for (const connection of this.#evictable()) {
      if (bytes <= MAX_BUFFERED_BYTES) return;
      if (connection.bufferedBytes === 0) continue;
      bytes -= connection.bufferedBytes;
      this.#disconnect(connection, 'unread');
    }
  }

  /** Connections that the app is not working for, the longest idle ones first. */
  #evictable(): PacedSocket[] {
    return [...this.#open].filter(({ isBusy }) => !isBusy).sort((a, b) => a.lastRequest - b.lastRequest);
  }

  readonly #continueLater = (connection: PacedSocket): void => {
    this.#waiting.add(connection);
    this.#scheduleWaiting();
  };

  #scheduleWaiting(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      let left = CONTINUED_AT_ONCE;
      for (const connection of this.#waiting) {
        if (left-- === 0) break;
        this.#waiting.delete(connection);
        connection.continue();
      }
      this.#scheduleWaiting();
    });
  }
}
