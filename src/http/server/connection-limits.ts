import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  Connection,
  compareUsefulness,
  CONNECTION_TIMEOUTS,
  NEW_MS,
  type ConnectionTimeouts,
  type Usefulness,
} from './connection.js';
import { TurnQueue } from './pipelining.js';

/** Interval of the check of all connections, in milliseconds. Checking a thousand takes less than one. */
const SWEEP_MS = 250;

/**
 * Maximum bytes buffered for clients, over all connections. Beyond it, the clients that have not read for the
 * longest time are disconnected. Including garbage, such a flood lets the process grow by up to 100 MB.
 */
const MAX_BUFFERED_BYTES = 48 * 2 ** 20;

/**
 * Connections allowed beyond the maximum while new clients send their first request: the size of Node's
 * listen backlog.
 */
const BURST = 511;

interface Ranked {
  socket: Duplex;
  connection: Connection;
  usefulness: Usefulness;
}

/**
 * The connections of a server. Beyond the maximum, the least useful ones are evicted. Clients that do not
 * read are always disconnected.
 */
export class ConnectionLimits {
  /** Connections closed here so far: unread, evicted, or refused because none could be evicted. */
  readonly closed = { unread: 0, evicted: 0, refused: 0 };
  readonly #connections = new Map<Duplex, Connection>();
  readonly #turns = new TurnQueue();
  readonly #attach: (socket: Socket) => void;
  #sweeping: NodeJS.Timeout | undefined;
  #burst: NodeJS.Timeout | undefined;

  /**
   * @param max maximum number of open connections; for 20 ms, up to 511 more.
   * @param attach returns a socket to the HTTP parser.
   */
  constructor(
    readonly max: number,
    attach: (socket: Socket) => void,
    private readonly timeouts: ConnectionTimeouts = CONNECTION_TIMEOUTS,
  ) {
    this.#attach = attach;
  }

  /** Number of open connections. */
  get open(): number {
    return this.#connections.size;
  }

  /** Accepts a new socket. If there are too many, schedules the eviction of the least useful ones. */
  add(socket: Socket): void {
    if (this.#connections.has(socket)) return;
    // The parser's own error listener is removed while a request is held.
    socket.on('error', () => undefined);
    if (this.open >= this.max + BURST) {
      this.closed.refused++;
      socket.resetAndDestroy();
      return;
    }
    this.#connections.set(socket, new Connection(socket, this.#turns, this.#attach, this.timeouts));
    socket.once('close', () => this.#connections.delete(socket));
    if (this.open > this.max) this.#awaitRequests();
  }

  /** The connection of a socket; undefined if it was refused or is closed. */
  get(socket: Duplex): Connection | undefined {
    return this.#connections.get(socket);
  }

  /** Starts the periodic check, which does not keep the process alive. */
  start(): void {
    this.#sweeping = setInterval(() => this.#sweep(performance.now()), SWEEP_MS).unref();
  }

  stop(): void {
    clearInterval(this.#sweeping);
    clearTimeout(this.#burst);
  }

  /** Closes every connection at once. */
  closeAll(): void {
    for (const socket of this.#connections.keys()) socket.destroy();
  }

  #sweep(now: number): void {
    let bytes = 0;
    for (const [socket, connection] of this.#connections) {
      if (connection.isOverdue(now)) this.#close(socket, connection, 'unread');
      else bytes += connection.bufferedBytes;
    }
    if (bytes > MAX_BUFFERED_BYTES) this.#free(bytes - MAX_BUFFERED_BYTES, now);
  }

  /** Frees this many buffered bytes: disconnects the clients that have not read for the longest time. */
  #free(bytes: number, now: number): void {
    let left = bytes;
    for (const { socket, connection } of this.#rank(now)) {
      if (left <= 0) return;
      left -= connection.bufferedBytes;
      if (connection.bufferedBytes > 0) this.#close(socket, connection, 'unread');
    }
  }

  /** Schedules the eviction, after new clients have had time to send a request. */
  #awaitRequests(): void {
    this.#burst ??= setTimeout(() => {
      // If the event loop was blocked, timers run before pending input is read; `setImmediate` runs after it.
      setImmediate(() => {
        this.#burst = undefined;
        this.#makeRoom(performance.now());
      });
    }, NEW_MS);
  }

  /** Closes the least useful connections; if only active ones are left, the newest of them. */
  #makeRoom(now: number): void {
    const ranked = this.#rank(now).filter(({ usefulness: { rank } }) => rank !== 'new');
    const excess = Math.max(0, ranked.length - this.max);
    const isServed = ({ usefulness: { rank } }: Ranked) => rank === 'active';
    const victims = [...ranked.filter((one) => !isServed(one)), ...ranked.filter(isServed).reverse()];
    for (const victim of victims.slice(0, excess)) {
      this.#close(victim.socket, victim.connection, isServed(victim) ? 'refused' : 'evicted');
    }
    if (this.open > this.max) this.#awaitRequests();
  }

  /** All connections, the least useful first. */
  #rank(now: number): Ranked[] {
    return [...this.#connections]
      .map(([socket, connection]) => ({ socket, connection, usefulness: connection.usefulness(now) }))
      .sort((a, b) => compareUsefulness(a.usefulness, b.usefulness));
  }

  #close(socket: Duplex, connection: Connection, reason: keyof ConnectionLimits['closed']): void {
    this.closed[reason]++;
    this.#connections.delete(socket);
    connection.close();
  }
}
