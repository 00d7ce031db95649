import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { UNCACHED } from '../support/background-reader.js';
import { packagesNamed } from '../support/datasets.js';
import { scrape } from '../support/metrics.js';
import { useProxiedService } from '../support/proxied-service.js';
import { getRequest, useConnections } from '../support/raw-connection.js';
import { useSharedService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const MAX_CONNECTIONS = 30;
/** Longest time until a new client gets its response, in milliseconds. */
const MAX_MS = 1000;

describe('A service at its connection limit', function () {
  this.timeout(60_000);
  const suite = useSharedService(() => ({
    ...UNCACHED,
    MAX_CONNECTIONS: String(MAX_CONNECTIONS),
    METRICS_PORT: '0',
  }));
  const connections = useConnections(() => suite.service.url);
  const metrics = () => scrape(suite.service.server.metricsUrl);
  const evicted = async () => (await metrics()).sum('connections_closed_total', { reason: 'evicted' }) ?? NaN;

  const useless: [what: string, bytes: string][] = [
    ['send nothing', ''],
    ['do not finish their request', 'GET /ping HTTP/1.1\r\nHost: a\r\n'],
    ['are idle after a request', getRequest('/ping')],
    ['do not read', getRequest('/openapi.json').repeat(1000)],
    ['do not finish the body of a request', 'POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1'],
  ];
  for (const [what, bytes] of useless) {
    it(`serves new clients at once if its connections are taken by clients that ${what}`, async () => {
      for (let i = 0; i < MAX_CONNECTIONS; i++) await connections.open(bytes, false);
      await pause(100);
      const before = await evicted();
      for (const path of ['/ping', '/search?q=redis']) {
        for (let i = 0; i < 2 * MAX_CONNECTIONS; i++) {
          // It stays open.
          const client = await connections.open(getRequest(path));
          const began = performance.now();
          while (client.responses.length === 0 && client.error === undefined) await client.received();
          expect(client.responses[0]?.status, path).to.equal(200);
          expect(performance.now() - began).to.be.lessThan(MAX_MS);
        }
      }
      expect(await evicted()).to.be.greaterThan(before);
      const open = async () => (await metrics()).sum('connections_open') ?? NaN;
      await waitFor(async () => (await open()) <= MAX_CONNECTIONS, 'room for them', 1000);
      expect((await metrics()).sum('connections_max')).to.equal(MAX_CONNECTIONS);
    });
  }
});

describe('A service whose connections all have requests in flight', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => packagesNamed(['alpha', 'beta']), {
    ...UNCACHED,
    MAX_CONNECTIONS: String(MAX_CONNECTIONS),
    METRICS_PORT: '0',
  });
  const connections = useConnections(() => suite.service.url);

  it('rejects new clients, and completes those requests', async () => {
    const refused = async () => {
      const metrics = await scrape(suite.service.server.metricsUrl);
      return metrics.sum('connections_closed_total', { reason: 'refused' }) ?? 0;
    };
    const before = await refused();
    // One for each query: concurrent equal requests share a search. Without the second, the new client would be idle again
    // before its 20 ms are over.
    const isSearch = (_method: string, path: string) => path.includes('_msearch');
    const holds = [suite.proxy.hold('before', isSearch), suite.proxy.hold('before', isSearch)] as const;
    const served = await connections.openMany(MAX_CONNECTIONS, getRequest('/search?q=alpha'));
    await holds[0].arrived;
    const began = performance.now();
    const late = await connections.open(getRequest('/search?q=beta'));
    await late.closed;
    expect(performance.now() - began).to.be.lessThan(MAX_MS);
    expect(late.error).to.equal('ECONNRESET');
    expect(served.flatMap(({ responses }) => responses)).to.deep.equal([]);
    for (const hold of holds) hold.release();
    await waitFor(() => served.every(({ responses }) => responses.length === 1), 'all responses');
    for (const { responses } of served) expect(responses[0]?.status).to.equal(200);
    expect(await refused()).to.equal(before + 1);
    const next = await connections.open(getRequest('/ping'));
    await waitFor(() => next.responses.length === 1, 'a response');
  });
});
