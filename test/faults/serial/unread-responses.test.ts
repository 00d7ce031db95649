import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { Agent, interceptors, request, type Dispatcher } from 'undici';
import { median, percentile } from '../../../fixtures/statistics.js';
import { packagesNamed } from '../../support/datasets.js';
import { scrape } from '../../support/metrics.js';
import { SpawnedCli } from '../../support/spawn-cli.js';
import { getRequest, useConnections } from '../../support/raw-connection.js';
import { useService } from '../../support/service.js';
import { waitFor } from '../../support/wait-for.js';

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
/** Rounds whose median must stay below `MAX_PING_MS`, because other programs can delay responses. */
const ROUNDS = 3;
const MAX_OPEN_MS = 30_000;
/** The kernel accepts more data of such a client after 18 s, and then every 24 s. */
const SLOW_READER_MS = 50_000;
/** Processor time for a body of half a million chunks, in milliseconds. */
const MAX_BODY_CPU_MS = 250;
const IMPATIENT = fileURLToPath(new URL('../../support/impatient-server.ts', import.meta.url));
const CONNECTION_CLOSED = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];

/** Resident memory of the process, in megabytes. */
function memoryOf({ pid }: SpawnedCli): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

/** Processor time that the process has used, in milliseconds. */
function processorTimeOf({ pid }: SpawnedCli): number {
  const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  // `utime` and `stime`, in hundredths of a second (proc_pid_stat(5)).
  const [user, system] = fields.split(' ').slice(11, 13);
  return 10 * (Number(user) + Number(system));
}

function socketsOf({ pid }: SpawnedCli): number {
  const folder = `/proc/${pid}/fd`;
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
  /** In milliseconds. */
  readonly times: number[] = [];
  readonly failures: string[] = [];
  #isStopped = false;
  // A server may close a connection without a request in flight just as one is sent on it, at its limit also a new connection
  // that has sent nothing for 20 ms: clients send that request once more (RFC 9112, 9.3.1).
  readonly #agents = [new Agent({ pipelining: 0 }), new Agent({ connections: 1 })].map((agent) =>
    agent.compose(
      interceptors.retry({ maxRetries: 1, minTimeout: 0, statusCodes: [], errorCodes: CONNECTION_CLOSED }),
    ),
  );
  readonly #done: Promise<unknown>;

  constructor(url: string) {
    this.#done = Promise.all(this.#agents.map((agent) => this.#loop(agent, url)));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
    await Promise.all(this.#agents.map((agent) => agent.close()));
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
  this.timeout(120_000);
  const suite = useService(() => PACKAGES);
  /** A replica of the suite's service in a child process, and its two addresses. */
  let replica: SpawnedCli;
  let url: string;
  let metricsUrl: string;
  const connections = useConnections(() => url);
  afterEach(() => replica.stop());

  /** Starts a replica in a process of its own. */
  async function start(name = 'main'): Promise<void> {
    replica = new SpawnedCli(name, {
      ...suite.service.env,
      NODE_OPTIONS: HEAP_OF_CONTAINER,
      PORT: '0',
      METRICS_PORT: '0',
      DATASET_URL: suite.dataset.url,
      RATE_LIMIT_POINTS: '0',
      MAX_CONNECTIONS: String(MAX_CONNECTIONS),
      CACHE_MAX_BYTES: '0',
    });
    [, metricsUrl = ''] = await replica.prints(/"metricsUrl":"([^"]+)"/, 30_000);
    url = await replica.url();
  }

  const burst = (path: string) => {
    const one = getRequest(path);
    return one.repeat(Math.floor(BURST_BYTES / one.length));
  };

  /** Runs `act`. Asserts that the memory of the replica grows little. @returns by how much, in megabytes. */
  async function growth(act: (measure: () => void) => Promise<unknown>): Promise<number> {
    const before = memoryOf(replica);
    let peak = before;
    await act(() => {
      peak = Math.max(peak, memoryOf(replica));
    });
    expect(peak - before).to.be.lessThan(MAX_GROWTH_MB);
    return peak - before;
  }

  /** Attacks with unread connections, next to normal readers. @returns p99 of `/ping`, in milliseconds. */
  async function attack(count: number, path: string): Promise<number> {
    const pings = new NormalReader(`${url}/ping`);
    const searches = new NormalReader(`${url}/search?q=name-1&limit=5`);
    await waitFor(() => pings.times.length > 200 && searches.times.length > 200, 'a warm replica', 30_000);
    const sockets = socketsOf(replica);
    let ms = 0;
    const megabytes = await growth(async (measure) => {
      const began = performance.now();
      await connections.openMany(count, burst(path), false);
      const isOver = () => {
        measure();
        ms = performance.now() - began;
        return ms > 3000 && socketsOf(replica) <= sockets + 4;
      };
      await waitFor(isOver, `${count} connections to be closed`, MAX_OPEN_MS);
    });
    await Promise.all([pings.stop(), searches.stop()]);
    const p99 = percentile(pings.times, 0.99);
    console.log(
      `      ${count} × ${path}: + ${megabytes.toFixed(0)} MB, closed after ${(ms / 1000).toFixed(1)} s, ` +
        `/ping p99 ${p99.toFixed(1)} ms, /search p99 ${percentile(searches.times, 0.99).toFixed(1)} ms`,
    );
    expect([...pings.failures, ...searches.failures]).to.deep.equal([]);
    return p99;
  }

  for (const [count, path] of [
    [400, '/ping'],
    [3 * MAX_CONNECTIONS, '/openapi.json'],
  ] as const) {
    it(`take little memory, disturb no other client and are disconnected: ${count} with 64 KB of GET ${path} each`, async () => {
      await start(IMPATIENT);
      const p99s: number[] = [];
      for (let round = 0; round < ROUNDS; round++) p99s.push(await attack(count, path));
      expect(median(p99s), 'the median').to.be.lessThan(MAX_PING_MS);
    });
  }

  it('are disconnected within half a minute with the usual timeouts', async () => {
    await start();
    await attack(400, '/openapi.json');
  });

  it('stay connected if they read 60 KB/s', async () => {
    await start();
    const slow = await connections.open(burst('/openapi.json'), false);
    slow.readAt(60_000);
    await pause(SLOW_READER_MS);
    expect(slow.error).to.equal(undefined);
    const metrics = await scrape(metricsUrl);
    expect(metrics.sum('connections_closed_total', { reason: 'unread' })).to.equal(0);
    expect(slow.responses.length).to.be.greaterThan(20);
    expect(metrics.sum('connections_open')).to.equal(1);
  });

  it('cost little memory and processor time if they send bodies that are not read', async () => {
    await start();
    const post = `POST /browse HTTP/1.1\r\nHost: a\r\nContent-Length: ${BURST_BYTES}\r\n\r\n${'x'.repeat(BURST_BYTES)}`;
    await growth(async (measure) => {
      await connections.openMany(100, post.repeat(20), false);
      for (let i = 0; i < 60; i++) await pause(50).then(measure);
    });
    const before = processorTimeOf(replica);
    const chunked = 'PUT /ping HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
    const client = await connections.open(chunked + '1\r\nx\r\n'.repeat(500_000));
    await client.closed;
    expect(client.responses.map(({ status }) => status)).to.deep.equal([405]);
    expect(processorTimeOf(replica) - before).to.be.lessThan(MAX_BODY_CPU_MS);
  });

  it('are disconnected on the metrics port, too, and do not block it', async () => {
    await start();
    await growth(async (measure) => {
      await connections.openMany(100, burst('/metrics'), false, metricsUrl);
      // New connections are rejected while too many are open; Prometheus retries.
      const scraped = async () =>
        (await fetch(`${metricsUrl}/metrics`).catch(() => undefined))?.status === 200;
      for (let i = 0; i < 50; i++) await waitFor(scraped, 'the metrics', 5000).then(measure);
    });
  });

  it('do not keep a server from stopping', async () => {
    await start();
    await connections.openMany(100, burst('/browse?limit=500'), false);
    await pause(1000);
    const began = performance.now();
    expect(await replica.stop()).to.equal(0);
    expect(performance.now() - began).to.be.lessThan(10_000);
  });
});
