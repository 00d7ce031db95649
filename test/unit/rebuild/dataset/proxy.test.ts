import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { download } from '../../../../src/rebuild/steps/download.js';

const CSV = 'name,url\na,https://registry.example/a\n';

const VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'];

/** A forward proxy that notes what it is asked for. */
interface Proxy {
  port: number;
  asked: string[];
  authorizations: (string | undefined)[];
  close(): void;
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function startProxy(): Promise<Proxy> {
  const asked: string[] = [];
  const authorizations: (string | undefined)[] = [];
  const note = ({ method, url, headers }: IncomingMessage) => {
    asked.push(`${method} ${url}`);
    authorizations.push(headers['proxy-authorization']);
  };
  const server = createServer((incoming, response) => {
    note(incoming);
    request(incoming.url ?? '', { headers: incoming.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    }).end();
  });
  server.on('connect', (incoming, socket) => {
    note(incoming);
    const [host = '', port] = (incoming.url ?? '').split(':');
    const target = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
    for (const one of [target, socket]) one.on('error', () => undefined);
  });
  const port = await listen(server);
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { port, asked, authorizations, close };
}

describe('A download behind a proxy', () => {
  const initial = Object.fromEntries(VARIABLES.map((name) => [name, process.env[name]]));
  let proxy: Proxy;
  let origin: Server;
  let url: string;

  before(async () => {
    proxy = await startProxy();
    origin = createServer((_request, response) => response.end(CSV));
    url = `http://127.0.0.1:${await listen(origin)}/list`;
  });
  beforeEach(() => {
    for (const name of VARIABLES) delete process.env[name];
    proxy.asked.length = 0;
    proxy.authorizations.length = 0;
  });
  after(() => {
    for (const [name, value] of Object.entries(initial)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    proxy.close();
    origin.close();
    origin.closeAllConnections();
  });

  const fetched = async (from = url) => {
    const { signal } = new AbortController();
    const dataset = await download(from, signal, { timeoutMs: 5000 });
    if (dataset === undefined) throw new Error('nothing was downloaded');
    return text(dataset.read()).finally(() => dataset.close());
  };

  it('asks it for the whole address, with its user and password', async () => {
    process.env['HTTP_PROXY'] = `http://user:change-me@127.0.0.1:${proxy.port}`;
    expect(await fetched()).to.equal(CSV);
    expect(proxy.asked).to.deep.equal([`GET ${url}`]);
    expect(proxy.authorizations).to.deep.equal([`Basic ${Buffer.from('user:change-me').toString('base64')}`]);
  });

  it('opens a tunnel for https, and fails if there is none behind it', async () => {
    process.env['HTTPS_PROXY'] = `http://127.0.0.1:${proxy.port}`;
    const failure = await fetched(url.replace('http:', 'https:')).catch((error: unknown) => error);
    // The origin speaks no TLS.
    expect(String(failure)).to.contain('the dataset could not be downloaded');
    expect(proxy.asked).to.deep.equal([`CONNECT ${new URL(url).host}`]);
  });

  it('does not use it for hosts in NO_PROXY', async () => {
    process.env['HTTP_PROXY'] = `http://127.0.0.1:${proxy.port}`;
    process.env['NO_PROXY'] = 'registry.example,127.0.0.1';
    expect(await fetched()).to.equal(CSV);
    expect(proxy.asked).to.deep.equal([]);
  });

  it('fails with a reason if its address is malformed', async () => {
    process.env['HTTP_PROXY'] = 'socks5://127.0.0.1:1080';
    const failure = await fetched().catch((error: unknown) => error);
    expect(failure)
      .to.have.property('message')
      .that.equals('the proxy in HTTPS_PROXY or HTTP_PROXY is not an http(s) address');
  });
});
