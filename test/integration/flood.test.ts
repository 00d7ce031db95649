import { expect } from 'chai';
import { flood, FLOOD_POINTS, FLOOD_REQUESTS, useReplicas } from '../support/flood.js';

describe('A flood through two replicas on one Redis', function () {
  this.timeout(60_000);
  const replicas = useReplicas();

  it('lets exactly the limit of one address pass, although the client forges other addresses', async () => {
    const statuses = await flood(replicas(), (n) => `198.51.100.${n % 256}, 192.0.2.1`);
    expect(statuses).to.deep.equal({ 200: FLOOD_POINTS, 429: FLOOD_REQUESTS - FLOOD_POINTS });
  });

  it('lets exactly the limit pass for each of several addresses', async () => {
    const statuses = await flood(replicas(), (n) => `203.0.113.${n % 256}, 198.51.100.${n % 4}`);
    expect(statuses).to.deep.equal({ 200: 4 * FLOOD_POINTS, 429: FLOOD_REQUESTS - 4 * FLOOD_POINTS });
  });
});
