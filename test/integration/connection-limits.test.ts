import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { useProxiedService } from '../support/proxied-service.js';
import { getRequest, RawConnection } from '../support/raw-connection.js';
import { UNCACHED } from '../support/background-reader.js';
import { waitFor } from '../support/wait-for.js';

const MAX_CONNECTIONS = 30;

describe('A service at its connection limit', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => packagesNamed(['alpha', 'beta']), {
    ...UNCACHED,
    MAX_CONNECTIONS: String(MAX_CONNECTIONS),
    METRICS_PORT: '0',
  });

  let opened: RawConnection[];
  beforeEach(() => (opened = []));
  afterEach(() => {
    for (const connection of opened) connection.destroy();
  });

  /** Opens as many connections as are allowed, and sends the same bytes on each. */
  async function take(bytes: string, isRead = false): Promise<void> {
    for (let i = 0; i < MAX_CONNECTIONS; i++) {
      const { url } = suite.service;
      const connection = await (isRead ? RawConnection.open(url) : RawConnection.openUnread(url));
      opened.push(connection);
      if (bytes !== '') connection.send(bytes);
    }
    await pause(100);
  }

  /** Sends requests on new connections, which stay open. @returns statuses and the longest time in ms. */
  async function ask(path: string, times: number): Promise<{ statuses: Set<number>; longest: number }> {
    const statuses = new Set<number>();
    let longest = 0;
    for (let i = 0; i < times; i++) {
      const began = performance.now();
      const connection = await RawConnection.open(suite.service.url);
      opened.push(connection);
      connection.send(getRequest(path));
      await waitFor(
        () => connection.responses.length > 0 || connection.error !== undefined,
        'a response',
        5000,
      );
      statuses.add(connection.responses[0]?.status ?? 0);
      longest = Math.max(longest, performance.now() - began);
    }
    return { statuses, longest };
  }

  async function metric(name: string, labels = ''): Promise<number> {
    const text = await (await fetch(`${suite.service.server.metricsUrl}/metrics`)).text();
    const line = text
      .split('\n')
      .find((one) => one.startsWith(`registry_search_${name}{`) && one.includes(labels));
    return Number(line?.split(' ')[1]);
  }

  const useless: [what: string, bytes: string][] = [
    ['clients that send nothing', ''],
    ['clients that do not finish their request', 'GET /ping HTTP/1.1\r\nHost: a\r\n'],
    ['clients that are idle after a request', getRequest('/ping')],
    ['clients that do not read', getRequest('/openapi.json').repeat(1000)],
    [
      'clients that do not finish the body of a request',
      'POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1',
    ],
  ];
  for (const [who, bytes] of useless) {
    it(`serves new clients at once if its connections are taken by ${who}`, async () => {
      await take(bytes);
      const evicted = await metric('connections_closed_total', 'reason="evicted"');
      for (const path of ['/ping', '/search?q=alpha']) {
        const { statuses, longest } = await ask(path, 2 * MAX_CONNECTIONS);
        expect([...statuses], path).to.deep.equal([200]);
        expect(longest, path).to.be.lessThan(1000);
      }
      expect(await metric('connections_closed_total', 'reason="evicted"')).to.be.greaterThan(evicted);
      await waitFor(async () => (await metric('connections_open')) <= MAX_CONNECTIONS, 'room for them', 1000);
      expect(await metric('connections_max')).to.equal(MAX_CONNECTIONS);
    });
  }

  it('serves a client that sends a request, however many others connect at the same time', async () => {
    const { url } = suite.service;
    const others = Array.from({ length: 10 * MAX_CONNECTIONS }, () => RawConnection.openUnread(url));
    const asking = await RawConnection.open(url);
    asking.send(getRequest('/search?q=alpha'));
    opened.push(asking, ...(await Promise.all(others)));
    await waitFor(() => asking.responses.length === 1, 'a response');
    expect(asking.error).to.equal(undefined);
  });

  it('keeps active clients connected while others connect and send nothing or pipeline endlessly', async () => {
    const user = await RawConnection.open(suite.service.url);
    opened.push(user);
    for (let i = 1; i <= 10; i++) {
      user.send(getRequest('/ping'));
      await waitFor(() => user.responses.length === i, 'a response');
      await take(i % 2 === 0 ? '' : getRequest('/ping').repeat(1000));
      for (const other of opened.splice(1)) other.destroy();
    }
    expect(user.error).to.equal(undefined);
  });

  it('rejects new clients at once while all connections have requests in flight, and completes those', async () => {
    const refused = await metric('connections_closed_total', 'reason="refused"');
    const holds = Array.from({ length: MAX_CONNECTIONS + 1 }, () =>
      suite.proxy.hold('before', (_method, path) => path.includes('_msearch')),
    );
    await waitFor(
      async () => (await metric('connections_open')) === 0,
      'earlier connections to close',
      20_000,
    );
    await take(getRequest('/search?q=alpha'), true);
    const served = [...opened];
    const late = await RawConnection.open(suite.service.url);
    const began = performance.now();
    late.send(getRequest('/search?q=beta'));
    await late.closed;
    expect(late.error).to.equal('ECONNRESET');
    expect(performance.now() - began).to.be.lessThan(500);
    for (const hold of holds) hold.release();
    await waitFor(() => served.every(({ responses }) => responses.length === 1), 'all responses');
    expect(served.flatMap(({ responses }) => responses.map(({ status }) => status))).to.deep.equal(
      Array.from({ length: MAX_CONNECTIONS }, () => 200),
    );
    expect(await metric('connections_closed_total', 'reason="refused"')).to.be.greaterThan(refused);
    expect([...(await ask('/ping', 5)).statuses]).to.deep.equal([200]);
  });
});
