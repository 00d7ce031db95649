import { createServer, request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { expect } from 'chai';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { listen } from '../support/listen.js';
import { startMcp, textOf } from '../support/mcp-client.js';
import { removeRegistries } from '../support/registries.js';
import { environmentOf, newSlug } from '../support/service.js';
import { runCommand, type EndedCommand } from '../support/spawn-cli.js';

const CSV = 'name,url\na,https://registry.example/a\n';

/** A forward proxy that notes what it is asked for. */
interface Proxy {
  port: number;
  asked: string[];
  authorizations: (string | undefined)[];
  /** Whether it opens the tunnels that it is asked for. */
  opensTunnels: boolean;
  close: () => Promise<void>;
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
    if (!proxy.opensTunnels) return;
    const [host = '', port] = (incoming.url ?? '').split(':');
    const target = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
    for (const one of [target, socket]) one.on('error', () => undefined);
  });
  const { port, close } = await listen(server);
  const proxy: Proxy = { port, asked, authorizations, opensTunnels: true, close };
  return proxy;
}

describe('A download behind a proxy', function () {
  this.timeout(60_000);
  const slug = newSlug();
  const slugOfAbsent = newSlug();
  let proxy: Proxy;
  let origin: DatasetServer;
  let url: string;
  /** A rebuild without its proxy, which waits for 7 s between attempts, beside the other tests. */
  let absent: Promise<EndedCommand>;

  before(async () => {
    proxy = await startProxy();
    origin = await datasetServer((_request, response) => response.end(CSV));
    ({ url } = origin);
    absent = rebuilt({ REGISTRY_SLUG: slugOfAbsent, HTTP_PROXY: 'http://user:hush-proxy@127.0.0.1:1' });
  });
  beforeEach(() => {
    proxy.asked.length = 0;
    proxy.authorizations.length = 0;
  });
  after(async () => {
    await proxy.close();
    await origin.close();
    await absent;
    await removeRegistries([slug, slugOfAbsent]);
  });

  /** Runs the command, which reaches Elasticsearch and Redis without the proxy. */
  const rebuilt = (env: Record<string, string>): Promise<EndedCommand> =>
    runCommand('cli/rebuild', { ...environmentOf(slug), DATASET_URL: url, ...env });

  it('asks it for the whole address, with its user and password', async () => {
    const { code, stderr } = await rebuilt({ HTTP_PROXY: `http://user:change-me@127.0.0.1:${proxy.port}` });
    expect(code, stderr).to.equal(0);
    expect(proxy.asked).to.deep.equal([`GET ${url}`]);
    const credentials = Buffer.from('user:change-me').toString('base64');
    expect(proxy.authorizations).to.deep.equal([`Basic ${credentials}`]);
  });

  it('opens a tunnel for https', async () => {
    const { code, stderr } = await rebuilt({
      DATASET_URL: url.replace('http:', 'https:'),
      HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`,
    });
    // The origin speaks no TLS.
    expect(code).to.equal(1);
    expect(stderr).to.contain('the dataset could not be downloaded');
    expect([...new Set(proxy.asked)]).to.deep.equal([`CONNECT ${new URL(url).host}`]);
  });

  it('ends at its deadline if the proxy opens no tunnel', async () => {
    proxy.opensTunnels = false;
    const began = performance.now();
    const { code, stderr } = await rebuilt({
      DATASET_URL: url.replace('http:', 'https:'),
      HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`,
      DATASET_DOWNLOAD_TIMEOUT_SECONDS: '1',
    });
    expect(code).to.equal(1);
    expect(stderr).to.contain('could not be downloaded within 1 s');
    expect(performance.now() - began).to.be.below(15_000);
  });

  it('fails with a reason without its password if the proxy cannot be reached', async () => {
    const { code, stderr } = await absent;
    expect(code).to.equal(1);
    expect(stderr).to.contain('ECONNREFUSED').and.not.to.contain('hush-proxy');
  });
});

describe('The MCP server behind a proxy', function () {
  this.timeout(60_000);
  let proxy: Proxy;
  let service: DatasetServer;

  before(async () => {
    proxy = await startProxy();
    service = await datasetServer((_request, response) => response.end(CSV));
  });
  beforeEach(() => {
    proxy.asked.length = 0;
    proxy.authorizations.length = 0;
  });
  after(async () => {
    await proxy.close();
    await service.close();
  });

  /** What the proxy at `HOST:PORT` is asked for during a call, and its result. */
  async function call(url: string, env: Record<string, string>) {
    const client = await startMcp(url, { env });
    const result = await client.callTool({ name: 'search_packages', arguments: { query: 'redis' } });
    await client.close();
    return { asked: proxy.asked, text: textOf(result) };
  }

  it('uses the variables of downloads', async () => {
    const { host } = new URL(service.url);
    const http = `http://${host}/base`;
    const https = `https://${host}`;
    const own = `127.0.0.1:${proxy.port}`;
    for (const [url, env, asked] of [
      [http, { HTTP_PROXY: own }, `GET ${http}/stats?`],
      [https, { HTTPS_PROXY: `http://user:change-me@${own}` }, `CONNECT ${host}`],
    ] as const) {
      proxy.asked.length = 0;
      const { asked: actual, text } = await call(url, env);
      expect(actual, JSON.stringify(env)).to.deep.equal([asked]);
      expect(text).to.match(
        url === http ? /does not respond like a package registry search/ : /cannot be reached/,
      );
    }
    const credentials = Buffer.from('user:change-me').toString('base64');
    expect(proxy.authorizations).to.include(`Basic ${credentials}`);
  });
});
