import { once } from 'node:events';
import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A held request, or its held response. */
export interface Hold {
  /** Resolves with the request's headers when the hold takes effect. */
  arrived: Promise<IncomingHttpHeaders>;
  /** Forwards it, if its sender is still connected. */
  release(): void;
}

interface Rule {
  matches: (method: string, path: string) => boolean;
  /** `lost`: after the engine has responded, and its response is never sent. */
  when: 'before' | 'after' | 'lost';
  arrive: (headers: IncomingHttpHeaders) => void;
  released: Promise<void>;
}

/** A proxy between a server and a real Elasticsearch that holds chosen requests while a test acts. */
export class EngineProxy {
  readonly #server: Server;
  readonly #rules: Rule[] = [];

  private constructor(private readonly engine: string) {
    this.#server = createServer((incoming, response) => {
      this.#handle(incoming, response).catch(() => response.destroy());
    });
  }

  static async start(engine: string): Promise<EngineProxy> {
    const proxy = new EngineProxy(engine);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Holds the next request that matches: before it reaches the engine, or after the engine has responded. */
  hold(when: 'before' | 'after', matches: (method: string, path: string) => boolean): Hold {
    let arrive: Rule['arrive'] = () => undefined;
    let release: () => void = () => undefined;
    const arrived = new Promise<IncomingHttpHeaders>((resolve) => (arrive = resolve));
    const released = new Promise<void>((resolve) => (release = resolve));
    this.#rules.push({ matches, when, arrive, released });
    return { arrived, release };
  }

  /** Closes the connection of the next request that matches instead of sending the engine's response. */
  loseResponse(matches: (method: string, path: string) => boolean): void {
    this.#rules.push({ matches, when: 'lost', arrive: () => undefined, released: Promise.resolve() });
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = incoming;
    const body = await buffer(incoming);
    const at = this.#rules.findIndex(({ matches }) => matches(method, url));
    const rule = at === -1 ? undefined : this.#rules.splice(at, 1)[0];
    const wait = async (when: 'before' | 'after') => {
      if (rule?.when !== when) return;
      rule.arrive(headers);
      await rule.released;
    };

    const gone = () => response.destroyed;
    await wait('before');
    if (gone()) return;
    const forwarded = request(`${this.engine}${url}`, { method, headers }).end(body);
    const [answer] = (await once(forwarded, 'response')) as [IncomingMessage];
    const answered = await buffer(answer);
    await wait('after');
    if (rule?.when === 'lost') response.destroy();
    if (gone()) return;
    for (const [name, value] of Object.entries(answer.headers)) {
      if (name !== 'transfer-encoding' && value !== undefined) response.setHeader(name, value);
    }
    response.setHeader('content-length', answered.length);
    response.writeHead(answer.statusCode ?? 502).end(answered);
  }
}
