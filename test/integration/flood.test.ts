import autocannon from 'autocannon';
import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { startService, useService, type Service } from '../support/service.js';

const POINTS = 1000;
const REQUESTS = 10_000;
const CONNECTIONS = 16;

describe('A flood through two replicas on one Redis', function () {
  this.timeout(120_000);
  const packages = packagesNamed(['alpha', 'beta']);
  const ENV = { RATE_LIMIT_POINTS: String(POINTS), RATE_LIMIT_WINDOW_SECONDS: '600' };

  /** Two replicas of one registry. */
  function useReplicas(env: Record<string, string>): () => [Service, Service] {
    const suite = useService(
      () => packages,
      () => env,
    );
    let second: Service;
    before(async () => {
      second = await startService({ ...env, DATASET_URL: suite.dataset.url }, suite.service.slug);
    });
    after(() => second.stop());
    return () => [suite.service, second];
  }

  type Headers = Record<string, string>;

  /** Sends all requests, half to each replica, each with the headers of its number. @returns how often each status came. */
  async function flood(replicas: Service[], headersOf: (n: number) => Headers = () => ({})) {
    const statuses: Record<string, number> = {};
    let sent = 0;
    const send = (replica: Service) =>
      autocannon({
        url: `${replica.url}/search?q=alpha`,
        connections: CONNECTIONS / replicas.length,
        amount: REQUESTS / replicas.length,
        requests: [{ setupRequest: (request) => ({ ...request, headers: headersOf(sent++) }) }],
      });
    for (const result of await Promise.all(replicas.map(send))) {
      expect(result.errors + result.timeouts, 'failed requests').to.equal(0);
      const { statusCodeStats } = result as unknown as { statusCodeStats: Record<string, { count: number }> };
      for (const [status, { count }] of Object.entries(statusCodeStats)) {
        statuses[status] = (statuses[status] ?? 0) + count;
      }
    }
    return statuses;
  }

  describe('of one address', () => {
    const replicas = useReplicas(ENV);

    it('lets exactly the budget pass', async () => {
      expect(await flood(replicas())).to.deep.equal({ 200: POINTS, 429: REQUESTS - POINTS });
    });
  });

  describe('of one address that forges X-Forwarded-For', () => {
    const replicas = useReplicas({ ...ENV, TRUSTED_PROXIES: '192.0.2.1' });

    it('lets exactly the budget pass', async () => {
      const forged = (n: number) => ({ 'X-Forwarded-For': `198.51.100.${n % 256}, 192.0.2.1` });
      expect(await flood(replicas(), forged)).to.deep.equal({ 200: POINTS, 429: REQUESTS - POINTS });
    });
  });

  describe('behind a trusted proxy', () => {
    const replicas = useReplicas({ ...ENV, TRUSTED_PROXIES: '127.0.0.1' });

    it('lets exactly one budget pass for each real client, whatever clients forge', async () => {
      const clients = 4;
      const forwarded = (n: number) => ({
        'X-Forwarded-For': `203.0.113.${n % 256}, 198.51.100.${n % clients}`,
      });
      const passed = clients * POINTS;
      expect(await flood(replicas(), forwarded)).to.deep.equal({ 200: passed, 429: REQUESTS - passed });
    });
  });

  describe('while Redis is killed and started again', () => {
    const replicas = useReplicas({ ...ENV, TRUSTED_PROXIES: '127.0.0.1' });

    it('fails no request, holds the budget in each process, and shares it again after', async () => {
      const { redis } = await engines();
      const as = (ip: string) => ({ 'X-Forwarded-For': ip });
      const end = new AbortController();
      const floods = (async () => {
        const statuses: Record<string, number> = {};
        while (!end.signal.aborted) {
          for (const [status, count] of Object.entries(await flood(replicas(), () => as('198.51.100.1')))) {
            statuses[status] = (statuses[status] ?? 0) + count;
          }
        }
        return statuses;
      })();
      await redis.kill();
      await redis.revive();
      end.abort();
      const statuses = await floods;
      expect(Object.keys(statuses).sort()).to.deep.equal(['200', '429']);
      // What each of the two processes counts for itself, and what Redis counts before and, as it has forgotten, after.
      expect(statuses['200']).to.be.within(POINTS, 4 * POINTS);

      const [first, second] = replicas();
      const left = async (replica: Service) => {
        const { headers } = await replica.get('/stats', { headers: as('198.51.100.2') });
        return /r=(\d+)/.exec(headers.get('RateLimit') ?? '')?.[1];
      };
      expect([await left(first), await left(second), await left(first)]).to.deep.equal(['999', '998', '997']);
    });
  });
});
