import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Connection, compareUsefulness, NEW_MS, type Usefulness } from './connection.js';
import { TurnQueue } from './pipelining.js';

/** How often all connections are looked at, in milliseconds: a thousand of them take less than one. */
const SWEEP_MS = 250;

/**
 * Bytes that may wait in this process for clients to read them, over all connections. Beyond it, those who have not read
 * for the longest time are disconnected. With the garbage that such a flood leaves, the process then grows by up to 100 MB.
 */
const MAX_BUFFERED_BYTES = 48 * 2 ** 20;

/**
 * Connections beyond the maximum that may be open while new clients send their first request: as many as the kernel holds
 * ready to be accepted at once.
 */
const BURST = 511;

/** A connection and how useful it was. */
interface Ranked {
  socket: Duplex;
  connection: Connection;
  usefulness: Usefulness;
}

/**
 * The connections of a server. If more are open than may be, the least useful ones make room for new ones; clients that do
 * not read are disconnected in any case.
 */
export class ConnectionLimits {
  /** Connections closed here so far: unread ones, those that made room for others, and those for which there was none. */
  readonly closed = { unread: 0, evicted: 0, refused: 0 };
  readonly #connections = new Map<Duplex, Connection>();
  readonly #turns = new TurnQueue();
  readonly #attach: (socket: Socket) => void;
  #sweeping: NodeJS.Timeout | undefined;
  #burst: NodeJS.Timeout | undefined;

  /**
   * @param max connections that may be open at a time; for 20 ms, up to 511 more.
   * @param attach gives a socket to the HTTP parser again.
   */
  constructor(
    readonly max: number,
    attach: (socket: Socket) => void,
  ) {
    this.#attach = attach;
  }

  /** How many are open. */
  get open(): number {
    return this.#connections.size;
  }

  /** Lets a new socket in, and soon closes the least useful connection in its place if there are too many. */
  add(socket: Socket): void {
    if (this.#connections.has(socket)) return;
    // Those of the parser are removed while a request is held.
    socket.on('error', () => undefined);
    if (this.open >= this.max + BURST) {
      this.closed.refused++;
      socket.resetAndDestroy();
      return;
    }
    this.#connections.set(socket, new Connection(socket, this.#turns, this.#attach));
    socket.once('close', () => this.#connections.delete(socket));
    if (this.open > this.max) this.#awaitRequests();
  }

  /** The connection of a socket; undefined for one that was refused or is closed. */
  get(socket: Duplex): Connection | undefined {
    return this.#connections.get(socket);
  }

  /** Begins to look at the connections; it keeps no process alive. */
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

  /** Disconnects the clients that have not read for the longest time, until so many bytes less wait for them. */
  #free(bytes: number, now: number): void {
    let left = bytes;
    for (const { socket, connection } of this.#rank(now)) {
      if (left <= 0) return;
      left -= connection.bufferedBytes;
      if (connection.bufferedBytes > 0) this.#close(socket, connection, 'unread');
    }
  }

  /** Schedules the eviction for when new clients have had time to send a request and the server has read it. */
  #awaitRequests(): void {
    this.#burst ??= setTimeout(() => {
      // After a busy moment, timers run before what has arrived is read; this runs after that.
      setImmediate(() => {
        this.#burst = undefined;
        this.#makeRoom(performance.now());
      });
    }, NEW_MS);
  }

  /** Closes the least useful connections, and those opened last if all others are being served. */
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

  /** All connections, the least useful one first. */
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
