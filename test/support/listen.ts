import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A server that a test has started. */
export interface ListeningServer {
  port: number;
  /** `http://127.0.0.1:…` */
  url: string;
  /** Stops it and its connections. */
  close: () => Promise<void>;
}

/** Starts a server on a free port of 127.0.0.1. */
export async function listen(server: Server): Promise<ListeningServer> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.once('close', () => sockets.delete(socket)));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  return { port, url: `http://127.0.0.1:${port}`, close };
}
