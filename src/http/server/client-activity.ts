import type { Socket } from 'node:net';
import type { ServerTimeouts } from './timeouts.js';

/** A client is reading slowly if the kernel accepts nothing for this time, in milliseconds. */
const SLOW_MS = 1_000;

/**
 * Whether a client has been inactive for too long, checked several times per timeout. Node sets one timeout before and another one
 * after each request: timers would cost more than these checks.
 */
export class ClientActivity {
  #timeoutMs = Infinity;
  #minTimeoutMs = 0;
  /** When the first check after the last progress was, by `performance.now()`; so are the other times. */
  #inactiveSince: number | undefined;
  #hasPipelined = false;
  /** Since when the client has pipelined without a pause, and without waiting until it reads. */
  #pipeliningSince: number | undefined;
  /** Bytes that the kernel had accepted at the last check, and the first check after which it had not accepted all. */
  #accepted = 0;
  #unsentSince: number | undefined;

  constructor(
    private readonly socket: Socket,
    private readonly timeouts: ServerTimeouts,
  ) {}

  /** Starts to wait for this many milliseconds; for 0, without a limit, as a socket does. */
  setTimeout(ms: number): void {
    this.#timeoutMs = ms === 0 ? Infinity : ms;
    this.#inactiveSince = undefined;
  }

  /** More requests have arrived than are answered. */
  pipelines(): void {
    this.#hasPipelined = true;
    this.#pipeliningSince ??= performance.now();
  }

  /** All requests have been answered. A client that has ever pipelined gets a shorter timeout now. */
  pauses(): void {
    this.#pipeliningSince = undefined;
    if (this.#hasPipelined) this.setTimeout(this.timeouts.pipelinedIdle);
  }

  /** Whether the timeout is over. A client that pipelines must have read something since it began. */
  isOver(now: number): boolean {
    this.#noticeReading(now);
    this.#inactiveSince ??= now;
    const isLate = now - (this.#pipeliningSince ?? this.#inactiveSince) >= this.#timeoutMs;
    return isLate && now - this.#inactiveSince >= this.#minTimeoutMs;
  }

  /** Whether the client has pipelined for too long without a pause: its next response is then the last one. */
  pipelinesTooLong(): boolean {
    if (this.#pipeliningSince === undefined) return false;
    const now = performance.now();
    // It may have waited for the client to read.
    this.#noticeReading(now);
    return now - this.#pipeliningSince >= this.timeouts.pipelining;
  }

  /** The kernel accepts more data when the client has read some. */
  #noticeReading(now: number): void {
    const { bytesWritten, writableLength } = this.socket;
    const accepted = bytesWritten - writableLength;
    if (accepted !== this.#accepted) {
      this.#accepted = accepted;
      this.#inactiveSince = undefined;
      if (now - (this.#unsentSince ?? now) >= SLOW_MS) {
        this.#pipeliningSince &&= now;
        this.#minTimeoutMs = 1.5 * this.timeouts.unread;
      }
      this.#unsentSince = undefined;
    }
    if (writableLength > 0) this.#unsentSince ??= now;
  }
}
