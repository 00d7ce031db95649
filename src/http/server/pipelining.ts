import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Maximum concurrent requests of one connection: several, so that pipelining saves round trips, but few,
 * because each can hold a whole response that the client does not read. Further requests of the connection
 * wait unparsed.
 */
export const MAX_IN_FLIGHT = 4;

/**
 * Pipelined requests started per period, over all connections: they take up to half of the CPU time, so that
 * requests of other connections are not delayed. Further ones wait.
 */
const PIPELINED_PER_PERIOD = 16;
const PERIOD_MS = 2;

/** Schedules the held requests of all connections, first come, first served, with a maximum per period. */
export class TurnQueue {
  readonly #waiting = new Set<() => void>();
  #left = PIPELINED_PER_PERIOD;
  #period: NodeJS.Timeout | undefined;
  #isScheduled = false;

  /** Takes one slot of this period. @returns false if none is left. */
  take(): boolean {
    this.#period ??= setTimeout(() => this.#beginPeriod(), PERIOD_MS);
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }

  /**
   * Calls `resume` when a slot is free, in a later iteration of the event loop. Adding it again before has no
   * effect.
   */
  add(resume: () => void): void {
    this.#waiting.add(resume);
    this.#schedule();
  }

  #beginPeriod(): void {
    this.#period = undefined;
    this.#left = PIPELINED_PER_PERIOD;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#left === 0 || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    setImmediate(() => this.#run());
  }

  #run(): void {
    this.#isScheduled = false;
    // A resumed connection takes up to MAX_IN_FLIGHT slots at once.
    let connections = Math.max(1, Math.floor(this.#left / MAX_IN_FLIGHT));
    for (const resume of this.#waiting) {
      if (connections-- === 0 || !this.take()) break;
      this.#waiting.delete(resume);
      resume();
    }
    this.#schedule();
  }
}

/**
 * Creates the request class of a server whose connections hold requests.
 *
 * Node parses all input of one read at once: up to 64 KB, or thousands of requests. Its parser stops early
 * only for a protocol upgrade: the `upgrade` event hands over the socket and the bytes after the request. A
 * request that must wait is therefore reported as an upgrade. The server puts it and the bytes after it back
 * into the socket (`headOf`), and returns the socket to the parser when the earlier responses are finished.
 * The same happens to real upgrade requests, which get a normal response (Node would lose the bytes after
 * them), and to requests with a body, which is never parsed.
 * @param mustHold whether a new request must be held; its headers are complete.
 */
export function heldRequestClass(mustHold: (request: IncomingMessage) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    /** Whether the client requests a protocol upgrade. */
    declare asked: boolean | null;
    /** The decision, made once: the parser reads `upgrade` twice. */
    declare held?: boolean;

    get upgrade(): boolean {
      return (this.held ??= this.asked === true || mustHold(this));
    }

    set upgrade(asked: boolean | null) {
      this.asked = asked;
    }
  };
}

/** What a parser gets to know about a request: skip its body, and stop after it. */
const STOP_PARSING = 2;

type OnIncoming = (request: IncomingMessage, keepAlive: boolean) => number;

/**
 * Lets the parser of a connection stop at a held request. Up to Node 24 it does so for every upgrade; since Node 26 it goes
 * on, because the request may have a body. Call it whenever a parser was attached to the socket.
 */
export function stopAtHeldRequests(socket: Socket): void {
  const { parser } = socket as unknown as { parser: { onIncoming: OnIncoming } };
  const onIncoming = parser.onIncoming;
  parser.onIncoming = (request, keepAlive) => {
    const decision = onIncoming(request, keepAlive);
    return (request as IncomingMessage & { upgrade: boolean }).upgrade ? STOP_PARSING : decision;
  };
}

/** Whether a body follows the headers of a request. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return isChunked(headers['transfer-encoding']) || Number(headers['content-length'] ?? 0) > 0;
}

/** Whether a body is chunked; with any other transfer coding it has no end (RFC 9112, section 6.3). */
export function isChunked(transferEncoding = ''): boolean {
  return /\bchunked[ \t]*$/i.test(transferEncoding);
}

/** Headers that describe the body. Without them, the parser expects none. */
const BODY_HEADERS = new Set(['content-length', 'transfer-encoding', 'trailer']);

/** Request line and headers in wire format, without `Upgrade` and without the headers of the body. */
export function headOf(request: IncomingMessage): Buffer {
  const { method, url, httpVersion, rawHeaders } = request;
  const isBodyDropped = hasBody(request);
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    const field = name.toLowerCase();
    const isDropped =
      field === 'upgrade' ||
      BODY_HEADERS.has(field) ||
      // The client waits for permission to send the body, which is dropped.
      (isBodyDropped && field === 'expect' && value.toLowerCase() === '100-continue');
    if (!isDropped) head += `${name}: ${value}\r\n`;
  }
  return Buffer.from(`${head}\r\n`, 'latin1');
}
