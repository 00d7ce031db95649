import { connect, createServer, type Socket } from 'node:net';
import { pipeline, Transform, type TransformCallback } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { listen } from './listen.js';

/** A TCP proxy between the replicas and one engine. Its latency can be raised, and its connections cut or silenced. */
export class EngineLink {
  /** Delay of every chunk in each direction, in milliseconds. */
  delayMs = 0;
  /** Sent in response to every chunk instead of forwarding it, as by a proxy whose engine is gone. */
  impostor: string | undefined;
  /** Of new connections: those of earlier ones are silent. */
  #generation = 0;
  readonly #sockets = new Set<Socket>();
  /** The address of the engine through this link. */
  url = '';
  /** Closes the link and its connections. */
  stop: () => Promise<void> = () => Promise.resolve();

  private constructor(private readonly target: URL) {}

  /** @param target address of the engine. */
  static async start(target: string): Promise<EngineLink> {
    const link = new EngineLink(new URL(target));
    const { port, close } = await listen(createServer((client) => link.#forward(client)));
    const stop = () => {
      link.cut();
      return close();
    };
    return Object.assign(link, { url: `${link.target.protocol}//127.0.0.1:${port}`, stop });
  }

  /** Open sockets, of both sides. */
  get open(): number {
    return this.#sockets.size;
  }

  /** Resets all open connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Forwards nothing more on the open connections, and keeps them open, as a NAT gateway that has forgotten them. */
  silence(): void {
    this.#generation++;
  }

  #forward(client: Socket): void {
    if (this.impostor !== undefined) {
      this.#sockets.add(client);
      client.on('error', () => undefined).once('close', () => this.#sockets.delete(client));
      client.on('data', () => client.write(this.impostor ?? ''));
      return;
    }
    const engine = connect({ host: this.target.hostname, port: Number(this.target.port), noDelay: true });
    client.setNoDelay(true);
    for (const socket of [client, engine]) {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    }
    // Either side ends with the other: a lost connection to the engine must not look like a slow one.
    const end = () => {
      client.destroy();
      engine.destroy();
    };
    pipeline(client, this.#delay(), engine, end);
    pipeline(engine, this.#delay(), client, end);
  }

  /** Delays chunks side by side, so that latency does not limit the throughput, and keeps their order. */
  #delay(): Transform {
    let waiting = 0;
    let last: Promise<unknown> = Promise.resolve();
    const generation = this.#generation;
    const line = new Transform({
      transform: (chunk: Buffer, _encoding, done: TransformCallback) => {
        if (generation !== this.#generation) {
          done();
          return;
        }
        if (this.delayMs === 0 && waiting === 0) {
          done(null, chunk);
          return;
        }
        waiting++;
        last = Promise.all([last, pause(this.delayMs)]).then(() => {
          waiting--;
          if (!line.destroyed) line.push(chunk);
        });
        done();
      },
      flush: (done: TransformCallback) => void last.then(() => done()),
    });
    return line;
  }
}
