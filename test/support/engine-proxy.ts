import { once } from 'node:events';
import {
  createServer,
  request,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listen } from './listen.js';

/** Selects requests to Elasticsearch. */
export type Matches = (method: string, path: string, body: string) => boolean;

/** Requests of a rebuild. A rollback sends the last one, too. */
export const isCreation: Matches = (method, path) => method === 'PUT' && /-packages-v2-2[^/]*$/.test(path);
export const isBulk: Matches = (_method, path) => path.includes('_bulk');
export const isMerge: Matches = (_method, path) => path.includes('_forcemerge');
export const isFlip: Matches = (_method, path, body) =>
  path.startsWith('/_aliases') && body.includes('is_write_index') && !body.includes('remove_index');
export const isRelease: Matches = (_method, path, body) =>
  path.includes('_update/state') && body.includes('"outcome":"rebuilt"');

/** A held request, or its held response. */
export interface Hold {
  /** Resolves with the request's headers when the hold takes effect. */
  arrived: Promise<IncomingHttpHeaders>;
  /** Forwards it, if its sender is still connected. */
  release(): void;
}

interface Rule {
  matches: Matches;
  /** `lost`: after the engine has responded, and its response is never sent. */
  when: 'before' | 'after' | 'lost';
  /** Applies to every request, not only to the first that matches. */
  lasts: boolean;
  arrive: (headers: IncomingHttpHeaders) => void;
  released: Promise<void>;
}

/** A proxy between a server and a real Elasticsearch that holds chosen requests while a test acts. */
export class EngineProxy {
  url = '';
  close: () => Promise<void> = () => Promise.resolve();
  readonly #rules: Rule[] = [];
  #impostor: { listener: RequestListener; matches: Matches } | undefined;

  private constructor(private readonly engine: string) {}

  static async start(engine: string): Promise<EngineProxy> {
    const proxy = new EngineProxy(engine);
    const server = createServer((incoming, response) => {
      proxy.#handle(incoming, response).catch(() => response.destroy());
    });
    return Object.assign(proxy, await listen(server));
  }

  /** Holds the next request that matches: before it reaches the engine, or after the engine has responded. */
  hold(when: 'before' | 'after', matches: Matches): Hold {
    return this.#hold(when, matches, false);
  }

  /** Holds all requests until `release`, like an engine that is frozen. */
  hang(): Hold {
    return this.#hold('before', () => true, true);
  }

  /** Responds to all requests that match until the returned function is called, like a proxy whose engine is gone. */
  impersonate(listener: RequestListener, matches: Matches = () => true): () => void {
    this.#impostor = { listener, matches };
    return () => (this.#impostor = undefined);
  }

  /**
   * Closes the connection of the next request that matches instead of sending the engine's response.
   * @returns when it has happened.
   */
  async loseResponse(matches: Matches): Promise<void> {
    await new Promise((arrive) => {
      this.#rules.push({ matches, when: 'lost', lasts: false, arrive, released: Promise.resolve() });
    });
  }

  #hold(when: 'before' | 'after', matches: Matches, lasts: boolean): Hold {
    let arrive: Rule['arrive'] = () => undefined;
    let resolve: () => void = () => undefined;
    const arrived = new Promise<IncomingHttpHeaders>((arrives) => (arrive = arrives));
    const released = new Promise<void>((resolves) => (resolve = resolves));
    const rule: Rule = { matches, when, lasts, arrive, released };
    this.#rules.push(rule);
    const release = () => {
      this.#remove(rule);
      resolve();
    };
    return { arrived, release };
  }

  #remove(rule: Rule): void {
    const at = this.#rules.indexOf(rule);
    if (at !== -1) this.#rules.splice(at, 1);
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = incoming;
    const body = await buffer(incoming);
    if (this.#impostor?.matches(method, url, body.toString()) === true) {
      this.#impostor.listener(incoming, response);
      return;
    }
    const rule = this.#rules.find(({ matches }) => matches(method, url, body.toString()));
    if (rule?.lasts === false) this.#remove(rule);
    const wait = async (...when: Rule['when'][]) => {
      if (rule === undefined || !when.includes(rule.when)) return;
      rule.arrive(headers);
      await rule.released;
    };

    const gone = () => response.destroyed;
    await wait('before');
    if (gone()) return;
    const forwarded = request(`${this.engine}${url}`, { method, headers }).end(body);
    const [answer] = (await once(forwarded, 'response')) as [IncomingMessage];
    const answered = await buffer(answer);
    await wait('after', 'lost');
    if (rule?.when === 'lost') response.destroy();
    if (gone()) return;
    for (const [name, value] of Object.entries(answer.headers)) {
      if (name !== 'transfer-encoding' && value !== undefined) response.setHeader(name, value);
    }
    response.setHeader('content-length', answered.length);
    response.writeHead(answer.statusCode ?? 502).end(answered);
  }
}
