import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Connection, compareUsefulness, type Usefulness } from './connection.js';
import { TurnQueue } from './pipelining.js';

/** How often all connections are looked at, in milliseconds: a thousand of them take less than one. */
const SWEEP_MS = 250;

/**
 * Bytes that may wait in this process for clients to read them, over all connections. Beyond it, those who have not read
 * for the longest time are disconnected.
 */
const MAX_BUFFERED_BYTES = 64 * 2 ** 20;

/** How long a ranking of the connections is used, and how soon after it the next one may be made, in milliseconds. */
const RANKING_MAX_AGE_MS = 250;
const RANKING_MIN_AGE_MS = 20;

/** A connection and how useful it was. */
interface Ranked {
  socket: Duplex;
  connection: Connection;
  usefulness: Usefulness;
}

/**
 * The connections of a server. If as many are open as may be, the least useful one makes room for a new one; clients that
 * do not read are disconnected in any case.
 */
export class ConnectionLimits {
  /** Connections closed here so far: unread ones, those that made room for others, and those for which there was none. */
  readonly closed = { unread: 0, evicted: 0, refused: 0 };
  readonly #connections = new Map<Duplex, Connection>();
  readonly #turns = new TurnQueue();
  readonly #attach: (socket: Socket) => void;
  /** Those that may be evicted, as ranked last; the least useful one last. */
  #victims: Ranked[] = [];
  #rankedAt = -Infinity;
  #sweeping: NodeJS.Timeout | undefined;

  /**
   * @param max connections that may be open at a time.
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

  /**
   * Lets a new socket in, in the place of the least useful connection if all are taken; resets it if every other
   * connection is being served. A socket that is known is left alone.
   */
  add(socket: Socket): void {
    if (this.#connections.has(socket)) return;
    // Those of the parser are removed while a request is held.
    socket.on('error', () => undefined);
    if (this.#connections.size >= this.max && !this.#evict(performance.now())) {
      this.closed.refused++;
      socket.resetAndDestroy();
      return;
    }
    this.#connections.set(socket, new Connection(socket, this.#turns, this.#attach));
    socket.once('close', () => this.#connections.delete(socket));
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

  /** Closes the least useful connection. @returns false if each one is being served. */
  #evict(now: number): boolean {
    if (now - this.#rankedAt > RANKING_MAX_AGE_MS) this.#rankVictims(now);
    for (;;) {
      const victim = this.#victims.pop();
      if (victim === undefined) {
        // A flood of connections must not pay for a ranking each.
        if (now - this.#rankedAt < RANKING_MIN_AGE_MS) return false;
        this.#rankVictims(now);
        if (this.#victims.length === 0) return false;
        continue;
      }
      const { socket, connection, usefulness } = victim;
      // It may have been used, or closed, since it was ranked.
      if (!this.#connections.has(socket) || connection.usefulness(now).since !== usefulness.since) continue;
      this.#close(socket, connection, 'evicted');
      return true;
    }
  }

  #rankVictims(now: number): void {
    this.#rankedAt = now;
    this.#victims = this.#rank(now)
      .filter(({ usefulness: { rank } }) => rank !== 'active')
      .reverse();
  }

  /** All connections, the least useful one first. */
  #rank(now: number): Ranked[] {
    return [...this.#connections]
      .map(([socket, connection]) => ({ socket, connection, usefulness: connection.usefulness(now) }))
      .sort((a, b) => compareUsefulness(a.usefulness, b.usefulness));
  }

  #close(socket: Duplex, connection: Connection, reason: 'unread' | 'evicted'): void {
    this.closed[reason]++;
    this.#connections.delete(socket);
    connection.close();
  }
}
