import { IncomingMessage } from 'node:http';

/**
 * Requests of one connection that are processed at a time. A few, so that pipelining saves round trips; each of them can
 * hold a whole response while the client does not read. Further requests of the connection wait, unparsed.
 */
export const MAX_IN_FLIGHT = 4;

/**
 * Pipelined requests that begin in each period, over all connections: they take up to half of the processor time, so that
 * new requests of other connections are not delayed. Those beyond it wait.
 */
const PIPELINED_PER_PERIOD = 16;
const PERIOD_MS = 2;

/** Schedules the requests that connections hold back: first come, first served, so many in each period. */
export class TurnQueue {
  readonly #waiting = new Set<() => void>();
  #left = PIPELINED_PER_PERIOD;
  #period: NodeJS.Timeout | undefined;
  #isScheduled = false;

  /** Takes one of the pipelined requests that may begin in this period. @returns false if none is left. */
  take(): boolean {
    this.#period ??= setTimeout(() => this.#beginPeriod(), PERIOD_MS);
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }

  /** Calls `resume` when it is its turn, in another iteration of the event loop; adding it again has no effect until then. */
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
    // Each of them takes up to so many requests as soon as it is resumed.
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
 * Makes the request class of a server whose connections hold requests back.
 *
 * Node parses everything that it has read in one go, up to 64 KB: thousands of requests. Its parser stops in the middle of
 * that for one reason, a request that changes the protocol: the event `upgrade` hands over the socket and the bytes after
 * the request. A request that has to wait is therefore reported as an upgrade; the server puts it and the bytes after it
 * back into the socket (`headOf`), and gives the socket to the parser again when the responses before it are finished.
 * So are requests for an upgrade, which are answered without one: Node would lose what was sent after them; and requests
 * with a body, whose bodies are never parsed.
 * @param mustHold whether a request that has just arrived is to be held; its headers are there.
 */
export function heldRequestClass(mustHold: (request: IncomingMessage) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    /** Whether the client asks for another protocol. */
    declare asked: boolean | null;
    /** The parser asks twice; it is decided once. */
    declare held?: boolean;

    get upgrade(): boolean {
      return (this.held ??= this.asked === true || mustHold(this));
    }

    set upgrade(asked: boolean | null) {
      this.asked = asked;
    }
  };
}

/** Whether a body follows the headers of a request. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return isChunked(headers['transfer-encoding']) || Number(headers['content-length'] ?? 0) > 0;
}

/** Whether a request's body comes in chunks; every other transfer coding has no end (RFC 9112, section 6.3). */
export function isChunked(transferEncoding = ''): boolean {
  return /\bchunked[ \t]*$/i.test(transferEncoding);
}

/** Headers that concern the body: without them, none is expected. */
const BODY_HEADERS = new Set(['content-length', 'transfer-encoding', 'trailer']);

/** Start line and headers of a request as they are sent, without `Upgrade` and without its body. */
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
      // The client asks whether to send its body.
      (isBodyDropped && field === 'expect' && value.toLowerCase() === '100-continue');
    if (!isDropped) head += `${name}: ${value}\r\n`;
  }
  return Buffer.from(`${head}\r\n`, 'latin1');
}
