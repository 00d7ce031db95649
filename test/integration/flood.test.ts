import { expect } from 'chai';
import { flood, FLOOD_POINTS, FLOOD_REQUESTS, useReplicas } from '../support/flood.js';

describe('A flood through two replicas on one Redis', function () {
  this.timeout(120_000);
  const limited = { 200: FLOOD_POINTS, 429: FLOOD_REQUESTS - FLOOD_POINTS };

  describe('of one address', () => {
    const replicas = useReplicas();

    it('lets exactly the budget pass', async () => {
      expect(await flood(replicas())).to.deep.equal(limited);
    });
  });

  describe('of one address that forges X-Forwarded-For', () => {
    const replicas = useReplicas({ TRUSTED_PROXIES: '192.0.2.1' });

    it('lets exactly the budget pass', async () => {
      const forged = (n: number) => ({ 'X-Forwarded-For': `198.51.100.${n % 256}, 192.0.2.1` });
      expect(await flood(replicas(), forged)).to.deep.equal(limited);
    });
  });

  describe('behind a trusted proxy', () => {
    const replicas = useReplicas({ TRUSTED_PROXIES: '127.0.0.1' });

    it('lets exactly one budget pass for each real client, despite forged headers', async () => {
      const clients = 4;
      const forwarded = (n: number) => ({
        'X-Forwarded-For': `203.0.113.${n % 256}, 198.51.100.${n % clients}`,
      });
      const passed = clients * FLOOD_POINTS;
      expect(await flood(replicas(), forwarded)).to.deep.equal({ 200: passed, 429: FLOOD_REQUESTS - passed });
    });
  });
});
