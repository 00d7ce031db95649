import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';

/** One parsed response. */
export interface RawResponse {
  status: number;
  headers: Headers;
  text: string;
}

/** A client that controls when it sends and when it reads. */
export class RawConnection {
  /** Resolves when either side has closed the connection. Never resolves for a client that does not read. */
  readonly closed: Promise<unknown>;
  /** Error code of the connection, if the service reset it. */
  error: string | undefined;
  readonly #socket: Socket;
  readonly #chunks: Buffer[] = [];
  readonly #responses: RawResponse[] = [];
  #unparsed: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('error', ({ code }: NodeJS.ErrnoException) => (this.error = code));
    this.closed = new Promise((resolve) => socket.once('close', resolve));
  }

  /** Connects and starts to read. */
  static async open(url: string): Promise<RawConnection> {
    const connection = await RawConnection.openUnread(url);
    connection.read();
    return connection;
  }

  /** Connects without reading until `read` or `readAt` is called. */
  static async openUnread(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    const connection = new RawConnection(socket);
    socket.pause();
    // A server that refuses a connection may reset it before this process has seen that it was accepted.
    await once(socket, 'connect').catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
    });
    return connection;
  }

  send(bytes: string | Buffer): void {
    this.#socket.write(bytes);
  }

  /** Half-closes the connection: no more requests follow. */
  endSending(): void {
    this.#socket.end();
  }

  read(): void {
    this.#socket.on('data', (chunk: Buffer) => this.#chunks.push(chunk));
    this.#socket.once('end', () => this.#socket.end());
    this.#socket.resume();
  }

  /** Reads at this rate: pauses after each chunk, of up to 64 KB, until the connection is closed. */
  readAt(bytesPerSecond: number): void {
    this.#socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#socket.pause();
      setTimeout(() => this.#socket.resume(), (1000 * chunk.length) / bytesPerSecond).unref();
    });
    this.#socket.resume();
  }

  /** The responses received completely. */
  get responses(): readonly RawResponse[] {
    let bytes = Buffer.concat([this.#unparsed, ...this.#chunks.splice(0)]);
    for (;;) {
      const [response, length] = firstOf(bytes);
      if (response === undefined) break;
      this.#responses.push(response);
      bytes = bytes.subarray(length);
    }
    this.#unparsed = bytes;
    return this.#responses;
  }

  /** Resolves when more bytes are received, or the connection is closed. @throws {Error} if it is reset. */
  async received(): Promise<void> {
    await Promise.race([once(this.#socket, 'data'), this.closed]);
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

/** The first response, if it is complete, and its length in bytes. */
function firstOf(bytes: Buffer): [RawResponse | undefined, number] {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return [undefined, 0];
  const [start = '', ...fields] = bytes.toString('latin1', 0, end).split('\r\n');
  const headers = new Headers(fields.map((field) => field.split(/: *(.*)/).slice(0, 2) as [string, string]));
  const begin = end + 4;
  const bodyEnd = begin + Number(headers.get('Content-Length') ?? 0);
  // Node sends its own responses in chunks, without a body.
  const length = bodyEnd + (headers.has('Transfer-Encoding') ? '0\r\n\r\n'.length : 0);
  if (length > bytes.length) return [undefined, 0];
  return [
    { status: Number(start.split(' ')[1]), headers, text: bytes.toString('utf8', begin, bodyEnd) },
    length,
  ];
}

/**
 * Connections that are closed after each test of the calling suite.
 * @param url address of the server, within tests.
 */
export function useConnections(url: () => string) {
  const opened: RawConnection[] = [];
  afterEach(() => {
    for (const connection of opened.splice(0)) connection.destroy();
  });
  /** Connects and sends bytes. @param isRead whether it reads at once. */
  const open = async (bytes: string | Buffer = '', isRead = true, to = url()): Promise<RawConnection> => {
    const connection = await (isRead ? RawConnection.open(to) : RawConnection.openUnread(to));
    opened.push(connection);
    if (bytes.length > 0) connection.send(bytes);
    return connection;
  };
  const openMany = (times: number, ...how: Parameters<typeof open>) =>
    Promise.all(Array.from({ length: times }, () => open(...how)));
  /** Sends bytes on a new connection. @returns all responses, once the server has closed it. */
  const send = async (bytes: string | Buffer): Promise<readonly RawResponse[]> => {
    const client = await open(bytes);
    await client.closed;
    return client.responses;
  };
  /** @returns the only response. */
  const sendOne = async (bytes: string | Buffer): Promise<RawResponse> => {
    const [response, ...more] = await send(bytes);
    expect(more).to.deep.equal([]);
    return response ?? expect.fail('there is no response');
  };
  return { open, openMany, send, sendOne };
}

/** A request without a body. */
export function getRequest(path: string, headers = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: registry.example\r\n${headers}\r\n`;
}
