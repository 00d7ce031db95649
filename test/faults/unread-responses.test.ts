import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { Agent, interceptors, request, type Dispatcher } from 'undici';
import { HttpServer } from '../../src/http/http-server.js';
import { concurrentTests } from '../support/concurrent-tests.js';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { getRequest, RawConnection } from '../support/raw-connection.js';
import { useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** Packages whose long URLs make a page of 500 a megabyte. */
const PACKAGES = packagesNamed(Array.from({ length: 600 }, (_, i) => `name-${i}`)).map((entry) => ({
  ...entry,
  url: `${entry.url}?${'x'.repeat(2000)}`,
}));

/** Size of the pipelined requests of each client. */
const BURST_BYTES = 64 * 1024;
/** Connection limit of the replica: more than most of these tests open. */
const MAX_CONNECTIONS = 500;
const MAX_GROWTH_MB = 100;
/**
 * The heap limits that V8 chooses in the container of docker-compose.yml (512 MB), on Node 20 and 24.
 * On a machine with more memory, it collects garbage later.
 */
const HEAP_OF_CONTAINER = '--max-old-space-size=256 --max-semi-space-size=1';
const MAX_PING_MS = 100;
/** Attempts to stay below `MAX_PING_MS`, because other programs can delay responses. */
const ROUNDS = 5;
const MAX_OPEN_MS = 30_000;
const CONNECTION_CLOSED = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];

/** A replica of the suite's service in a child process. */
interface Replica {
  program: SpawnedCli;
  url: string;
  metricsUrl: string;
}

/** Resident memory of the process, in megabytes. */
function memoryOf({ program }: Replica): number {
  const status = readFileSync(`/proc/${program.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

function socketsOf({ program }: Replica): number {
  const folder = `/proc/${program.pid}/fd`;
  return readdirSync(folder).filter((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`).startsWith('socket:');
    } catch {
      return false; // Closed in the meantime.
    }
  }).length;
}

/** A client that sends requests and reads the responses in loops, on new and on keep-alive connections. */
class NormalReader {
  readonly times: number[] = [];
  readonly failures: string[] = [];
  #isStopped = false;
  readonly #agents = [
    new Agent({ pipelining: 0 }),
    // A server may close an idle connection just as a request is sent on it: clients send that once more (RFC 9112, 9.3.1).
    new Agent({ connections: 1 }).compose(
      interceptors.retry({ maxRetries: 1, minTimeout: 0, statusCodes: [], errorCodes: CONNECTION_CLOSED }),
    ),
  ];
  readonly #done: Promise<unknown>;

  constructor(replica: Replica, path: string) {
    this.#done = Promise.all(this.#agents.map((agent) => this.#loop(agent, replica.url + path)));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
    await Promise.all(this.#agents.map((agent) => agent.close()));
  }

  /** Of all its latencies so far, in milliseconds. */
  get p99(): number {
    const sorted = this.times.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length * 0.99)] ?? NaN;
  }

  async #loop(dispatcher: Dispatcher, url: string): Promise<void> {
    while (!this.#isStopped) {
      const began = performance.now();
      try {
        const { statusCode, body } = await request(url, { dispatcher });
        await body.dump();
        if (statusCode !== 200) this.failures.push(`${url}: ${statusCode}`);
      } catch (error) {
        this.failures.push(`${url}: ${(error as Error).message}`);
      }
      this.times.push(performance.now() - began);
      await pause(20);
    }
  }
}

describe('Clients that do not read', function () {
  this.timeout(300_000);
  const suite = useService(() => PACKAGES);
  const opened: RawConnection[] = [];
  let replica: Replica;

  beforeEach(async () => {
    const { elasticsearch, redis } = await engines();
    const program = new SpawnedCli('src/main.ts', {
      NODE_OPTIONS: HEAP_OF_CONTAINER,
      PORT: '0',
      METRICS_PORT: '0',
      ELASTICSEARCH_URL: elasticsearch.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: suite.service.slug,
      DATASET_URL: suite.dataset.url,
      RATE_LIMIT_POINTS: '0',
      MAX_CONNECTIONS: String(MAX_CONNECTIONS),
      CACHE_MAX_BYTES: '0',
    });
    const [, metricsUrl = ''] = await program.prints(/"metricsUrl":"([^"]+)"/, 30_000);
    replica = { program, url: await program.url(), metricsUrl };
  });
  afterEach(async () => {
    for (const connection of opened.splice(0)) connection.destroy();
    await replica.program.stop();
  });

  async function openUnread(times: number, bytes: string, url = replica.url): Promise<void> {
    const connections = await Promise.all(Array.from({ length: times }, () => RawConnection.openUnread(url)));
    opened.push(...connections);
    for (const connection of connections) connection.send(bytes);
  }

  const burst = (path: string, headers?: string) => {
    const one = getRequest(path, headers);
    return one.repeat(Math.floor(BURST_BYTES / one.length));
  };

  /** Attacks with unread connections, next to normal readers. @returns p99 of `/ping`, in milliseconds. */
  async function attack(connections: number, path: string): Promise<number> {
    const pings = new NormalReader(replica, '/ping');
    const searches = new NormalReader(replica, '/search?q=name-1&limit=5');
    await waitFor(() => pings.times.length > 200 && searches.times.length > 200, 'a warm replica');
    const memory = memoryOf(replica);
    const sockets = socketsOf(replica);
    let peak = memory;
    const began = performance.now();
    await openUnread(connections, burst(path));
    await waitFor(
      () => {
        peak = Math.max(peak, memoryOf(replica));
        return performance.now() - began > 5000 && socketsOf(replica) <= sockets + 4;
      },
      `${connections} connections to be closed, of ${socketsOf(replica)} sockets`,
      60_000,
    );
    const seconds = (performance.now() - began) / 1000;
    await Promise.all([pings.stop(), searches.stop()]);
    console.log(
      `      ${connections} × ${path}: ${memory.toFixed(0)} → ${peak.toFixed(0)} MB, closed after ${seconds.toFixed(1)} s, ` +
        `/ping p99 ${pings.p99.toFixed(1)} ms, /search p99 ${searches.p99.toFixed(1)} ms`,
    );
    expect(pings.failures).to.deep.equal([]);
    expect(searches.failures).to.deep.equal([]);
    expect(peak - memory).to.be.lessThan(MAX_GROWTH_MB);
    expect(seconds * 1000).to.be.lessThan(MAX_OPEN_MS);
    return pings.p99;
  }

  const unread: [connections: number, path: string][] = [
    [40, '/openapi.json'],
    [40, '/ping'],
    [400, '/openapi.json'],
    [400, '/ping'],
    [400, '/browse?limit=500'],
    [3 * MAX_CONNECTIONS, '/openapi.json'],
  ];
  for (const [connections, path] of unread) {
    it(`take little memory, disturb no other client and are disconnected: ${connections} with 64 KB of GET ${path} each`, async () => {
      let p99 = Infinity;
      for (let round = 0; round < ROUNDS && p99 >= MAX_PING_MS; round++) {
        p99 = Math.min(p99, await attack(connections, path));
      }
      expect(p99).to.be.lessThan(MAX_PING_MS);
    });
  }

  it('take little memory if they send bodies that are not read', async () => {
    const memory = memoryOf(replica);
    const body = 'x'.repeat(BURST_BYTES);
    const post = `POST /browse HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    await openUnread(100, post.repeat(20));
    let peak = memory;
    for (let i = 0; i < 100; i++) {
      await pause(50);
      peak = Math.max(peak, memoryOf(replica));
    }
    expect(peak - memory).to.be.lessThan(MAX_GROWTH_MB);
  });

  it('are disconnected on the metrics port, too, and do not block it', async () => {
    const memory = memoryOf(replica);
    await openUnread(100, burst('/metrics'), replica.metricsUrl);
    let peak = memory;
    // New connections are rejected while too many are open; Prometheus retries.
    const scraped = async () =>
      (await fetch(`${replica.metricsUrl}/metrics`).catch(() => undefined))?.status === 200;
    for (let i = 0; i < 50; i++) {
      await waitFor(scraped, 'the metrics', 5000);
      peak = Math.max(peak, memoryOf(replica));
    }
    expect(peak - memory).to.be.lessThan(MAX_GROWTH_MB);
  });

  it('do not keep a server from stopping', async () => {
    await openUnread(100, burst('/browse?limit=500'));
    await pause(1000);
    const began = performance.now();
    expect(await replica.program.stop()).to.equal(0);
    expect(performance.now() - began).to.be.lessThan(10_000);
  });

  /** Larger than socket buffers plus what a slow client reads within the timeout of unread responses. */
  const LARGE = Buffer.alloc(14 * 2 ** 20, 'x');
  const largeServer = new HttpServer((_request, response) => {
    response.writeHead(200, { 'Content-Length': LARGE.length }).end(LARGE);
  }, 10);
  let largeUrl: string;
  before(async () => {
    largeUrl = await largeServer.listen(0, '127.0.0.1');
  });
  after(() => largeServer.stop());

  // During the tests above, because it takes most of a minute and little processor time.
  concurrentTests()('are disconnected, but not one that reads a large response slowly', async () => {
    const slow = await RawConnection.openUnread(largeUrl);
    const trickling = await RawConnection.openUnread(largeUrl);
    for (const client of [slow, trickling]) client.send(getRequest('/'));
    slow.readAt(300 * 1024);
    trickling.readAt(1);
    await waitFor(
      () => largeServer.connections.closed.unread === 1,
      'the trickling client to be disconnected',
      MAX_OPEN_MS,
    );
    await waitFor(() => slow.responses.length === 1, 'the slow reader to finish', 80_000);
    expect(slow.error).to.equal(undefined);
    expect(slow.responses[0]?.text).to.have.length(LARGE.length);
    expect(largeServer.connections.closed).to.deep.equal({ unread: 1, evicted: 0, refused: 0 });
    slow.destroy();
    trickling.destroy();
  });
});
