import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** The response to bytes that need not be valid HTTP. */
export interface RawAnswer {
  /** 0 if the connection was closed without a response. */
  status: number;
  headers: Headers;
  text: string;
}

/** Sends pieces with a pause after each, and reads until the other side closes, at most `timeoutMs`. */
export async function rawRequest(
  url: string,
  pieces: (string | Buffer)[],
  { pauseMs = 0, timeoutMs = 30_000 } = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  const closed = new Promise<void>((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    // A reset after the response also ends it.
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
    socket.setTimeout(timeoutMs, () => {
      socket.destroy();
      reject(new Error(`the connection was still open after ${timeoutMs} ms`));
    });
  });
  const send = async () => {
    for (const piece of pieces) {
      if (socket.destroyed) return;
      socket.write(piece);
      if (pauseMs > 0) await pause(pauseMs);
    }
  };
  await Promise.all([closed, send()]);
  return parse(Buffer.concat(chunks).toString());
}

function parse(answer: string): RawAnswer {
  const [head = '', ...rest] = answer.split('\r\n\r\n');
  const [start = '', ...fields] = head.split('\r\n');
  const headers = new Headers();
  for (const field of fields) {
    const colon = field.indexOf(':');
    headers.append(field.slice(0, colon), field.slice(colon + 1).trim());
  }
  return { status: Number(start.split(' ')[1] ?? 0), headers, text: rest.join('\r\n\r\n') };
}
