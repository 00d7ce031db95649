import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { Agent, interceptors, request, type Dispatcher } from 'undici';
import { median, percentile } from '../../fixtures/statistics.js';
import { freePort } from '../../../dev/free-port.js';
import { startHaProxy, type HaProxy } from '../../soak/haproxy.js';
import { packagesNamed } from '../../support/datasets.js';
import { SpawnedCli } from '../../support/spawn-cli.js';
import { getRequest, useConnections } from '../../support/raw-connection.js';
import { newFolder } from '../../support/run-folder.js';
import { useService } from '../../support/service.js';
import { repeat } from '../../support/repeat.js';
import { waitFor } from '../../support/wait-for.js';

/** Packages whose long URLs make a page of 500 a megabyte. */
const PACKAGES = packagesNamed(Array.from({ length: 600 }, (_, i) => `name-${i}`)).map((entry) => ({
  ...entry,
  url: `${entry.url}?${'x'.repeat(2000)}`,
}));

/** Size of the pipelined requests of each client. */
const BURST_BYTES = 64 * 1024;
/** Limits through the proxy. */
const MAX_GROWTH_MB = 40;
const MAX_PING_MS = 50;
/**
 * The heap limits that V8 chooses in the container of docker-compose.yml, on Node 20 and 24. On a machine with more
 * memory, it collects garbage later.
 */
const HEAP_OF_CONTAINER = '--max-old-space-size=256 --max-semi-space-size=1';
/** Maximum number of rounds, of which the best p99 counts: other programs can only delay responses. */
const MAX_ROUNDS = 3;
/** Duration of a flood. */
const FLOOD_MS = 4000;
/** The flood is at 127.0.0.1. */
const ADDRESS_OF_READERS = '127.0.0.2';
const CONNECTION_CLOSED = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];

/** Resident memory of the process, in megabytes. */
function memoryOf({ pid }: SpawnedCli): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

/** A client that sends requests and reads the responses in loops, on new and on keep-alive connections. */
class NormalReader {
  /** In milliseconds. */
  readonly times: number[] = [];
  readonly failures: string[] = [];
  // A server may close a connection without a request in flight just as one is sent on it: clients send that request once
  // more (RFC 9112, 9.3.1).
  readonly #agents = [
    new Agent({ pipelining: 0, localAddress: ADDRESS_OF_READERS }),
    new Agent({ connections: 1, localAddress: ADDRESS_OF_READERS }),
  ].map((agent) =>
    agent.compose(
      interceptors.retry({ maxRetries: 1, minTimeout: 0, statusCodes: [], errorCodes: CONNECTION_CLOSED }),
    ),
  );
  readonly #ends: (() => Promise<void>)[];

  constructor(url: string) {
    this.#ends = this.#agents.map((agent) => repeat(1, () => this.#read(agent, url)));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#ends.map((end) => end()));
    await Promise.all(this.#agents.map((agent) => agent.close()));
  }

  async #read(dispatcher: Dispatcher, url: string): Promise<void> {
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

describe('A flood of requests whose responses are not read', function () {
  this.timeout(120_000);
  const suite = useService(() => PACKAGES);
  /** A replica of the suite's service in a child process, and the address of the proxy in front of it. */
  let replica: SpawnedCli;
  let proxyUrl: string;
  let proxy: HaProxy;
  const connections = useConnections(() => proxyUrl);
  afterEach(async () => {
    await proxy.stop();
    await replica.stop();
  });

  /** Starts a replica in a separate process, behind HAProxy with deploy/haproxy.cfg. */
  async function start(): Promise<void> {
    const port = await freePort();
    replica = new SpawnedCli('main', {
      ...suite.service.env,
      NODE_OPTIONS: HEAP_OF_CONTAINER,
      PORT: String(port),
      DATASET_URL: suite.dataset.url,
      RATE_LIMIT_POINTS: '0',
      CACHE_MAX_BYTES: '0',
    });
    await replica.url();
    proxy = await startHaProxy(newFolder(), [port]);
    proxyUrl = proxy.url;
    await waitFor(async () => (await fetch(`${proxyUrl}/ping`)).status === 200, 'the proxy');
  }

  const burst = (path: string) => {
    const one = getRequest(path);
    return one.repeat(Math.floor(BURST_BYTES / one.length));
  };

  /** Floods the proxy, next to normal readers. @returns p99 of `/ping` in milliseconds, megabytes, and failed reads. */
  async function flood(count: number, path: string) {
    const pings = new NormalReader(`${proxyUrl}/ping`);
    const searches = new NormalReader(`${proxyUrl}/search?q=name-1&limit=5`);
    await waitFor(() => pings.times.length > 200 && searches.times.length > 200, 'a warm replica', 30_000);
    pings.times.length = 0;
    const before = memoryOf(replica);
    let peak = before;
    const end = performance.now() + FLOOD_MS;
    const flooding = await connections.openMany(count, burst(path), false);
    while (performance.now() < end) {
      await pause(50);
      peak = Math.max(peak, memoryOf(replica));
    }
    for (const client of flooding) client.destroy();
    await Promise.all([pings.stop(), searches.stop()]);
    const [ping, search] = [pings, searches].map(({ times }) => percentile(times, 0.99).toFixed(1));
    const growth = peak - before;
    console.log(
      `      ${count} × ${path}: + ${growth.toFixed(0)} MB, p99 of /ping ${ping} ms, of /search ${search} ms`,
    );
    const failures = [...pings.failures, ...searches.failures];
    return { p99: Number(ping), growth, failures };
  }

  for (const count of [40, 1500]) {
    for (const path of ['/ping', '/openapi.json']) {
      it(`through the proxy takes little memory and disturbs no other client: ${count} × 64 KB of ${path}`, async () => {
        await start();
        const rounds = [await flood(count, path)];
        const isSlow = () => rounds.every(({ p99 }) => p99 >= MAX_PING_MS);
        while (isSlow() && rounds.length < MAX_ROUNDS) rounds.push(await flood(count, path));
        expect(rounds.flatMap(({ failures }) => failures)).to.deep.equal([]);
        expect(median(rounds.map(({ growth }) => growth)), 'growth').to.be.lessThan(MAX_GROWTH_MB);
        expect(Math.min(...rounds.map(({ p99 }) => p99)), 'p99').to.be.lessThan(MAX_PING_MS);
      });
    }
  }
});
