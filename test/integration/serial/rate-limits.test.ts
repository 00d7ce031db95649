import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect } from 'chai';
import { packagesNamed } from '../../support/datasets.js';
import { useOwnEngine } from '../../support/engines.js';
import { expectProblem } from '../../support/expect-problem.js';
import { flood, FLOOD_POINTS, useReplicas } from '../../support/flood.js';
import { scrape } from '../../support/metrics.js';
import { repeat } from '../../support/repeat.js';
import { spawnReplica } from '../../support/replicas.js';
import { request, useService, type Service } from '../../support/service.js';
import { waitFor } from '../../support/wait-for.js';

const as = (ip: string) => ({ headers: { 'X-Forwarded-For': ip } });

describe('Rate limits on a slow or unavailable Redis', function () {
  this.timeout(60_000);
  const POINTS = 20;
  const engine = useOwnEngine('redis');
  const suite = useService(
    () => packagesNamed(['alpha', 'beta']),
    () => ({
      RATE_LIMIT_POINTS: String(POINTS),
      TRUSTED_PROXIES: '127.0.0.1',
      REDIS_URL: engine().url,
    }),
  );
  let redis: Redis;

  before(() => {
    redis = new Redis(engine().url);
    redis.on('error', () => undefined);
  });
  after(() => redis.disconnect());

  const statsAs = (ip: string) => suite.service.get('/stats', as(ip));

  it('delay requests within the limit by 50 ms', async () => {
    const client = '198.51.100.20';
    for (let i = 0; i < POINTS / 2; i++) expect((await statsAs(client)).status).to.equal(200);
    await redis.client('PAUSE', 2000, 'ALL');
    const times: number[] = [];
    for (let i = 0; i < POINTS; i++) {
      const began = performance.now();
      expect((await statsAs(client)).status).to.equal(200);
      times.push(performance.now() - began);
    }
    expect(times.toSorted((a, b) => a - b)[POINTS / 2], 'the median').to.be.within(45, 75);
    expect(Math.max(...times)).to.be.lessThan(250);
    // Redis counts them, too, when it responds again.
    const counted = await redis.get(`${suite.service.slug}:limit:reading:${client}`);
    expect(counted).to.equal(String(POINTS / 2 + POINTS));
  });

  it('are applied by each process until Redis responds again', async () => {
    const client = '198.51.100.21';
    await redis.client('PAUSE', 2500, 'ALL');
    for (let i = 0; i < POINTS; i++) expect((await statsAs(client)).status).to.equal(200);
    expectProblem(await statsAs(client), 429, 'rate_limited');
    await redis.ping();
    expectProblem(await statsAs(client), 429, 'rate_limited');
    // A new client, because Redis has also counted the requests that it received meanwhile.
    const { headers } = await statsAs('198.51.100.22');
    expect(headers.get('RateLimit')).to.contain(`r=${POINTS - 1};`);
    expect(await redis.get(`${suite.service.slug}:limit:reading:198.51.100.22`)).to.equal('1');
  });
});

describe('Rate limits of a process that is suspended for a second', function () {
  this.timeout(60_000);
  const CONNECTIONS = 8;
  const SUSPENSIONS = 3;
  const suite = useService(() => packagesNamed(['alpha', 'beta']));

  it('are still counted on Redis, except those of requests in flight', async () => {
    const replica = spawnReplica(suite, { RATE_LIMIT_POINTS: '1000000', METRICS_PORT: '0' });
    const url = await replica.url();
    const [, metricsUrl] = await replica.prints(/"metricsUrl":"([^"]+)"/, 10_000);
    let sent = 0;
    const stop = repeat(CONNECTIONS, async () => {
      expect((await request(`${url}/stats`)).status).to.equal(200);
      sent++;
    });
    for (let i = 0; i < SUSPENSIONS; i++) {
      await pause(200);
      replica.signal('SIGSTOP');
      await pause(1000);
      replica.signal('SIGCONT');
    }
    await stop();
    const metrics = await scrape(metricsUrl);
    expect(sent).to.be.greaterThan(100);
    expect(metrics.sum('limit_fallbacks_total')).to.be.at.most(SUSPENSIONS * CONNECTIONS);
    await replica.stop();
  });
});

describe('A flood through two replicas during a restart of Redis', function () {
  this.timeout(120_000);
  const redis = useOwnEngine('redis');
  const replicas = useReplicas(() => ({ REDIS_URL: redis().url }));

  it('fails no request: each process applies the budget', async () => {
    const statuses: Record<string, number> = {};
    const stop = repeat(1, async () => {
      for (const [status, count] of Object.entries(await flood(replicas(), () => '198.51.100.1')))
        statuses[status] = (statuses[status] ?? 0) + count;
    });
    await redis().kill();
    await redis().restart();
    await stop();
    expect(Object.keys(statuses).sort()).to.deep.equal(['200', '429']);
    // Each process counts by itself during the restart; Redis counts before and, with its data lost, after.
    expect(statuses['200']).to.be.within(FLOOD_POINTS, 4 * FLOOD_POINTS);
  });

  it('shares the budget again afterwards', async () => {
    const [first, second] = replicas();
    const left = async (replica: Service, ip: string) => {
      const { headers } = await replica.get('/stats', as(ip));
      return Number(/r=(\d+)/.exec(headers.get('RateLimit') ?? '')?.[1]);
    };
    // Each replica connects again within a second.
    let clients = 0;
    const share = async () => {
      const ip = `203.0.113.${clients++}`;
      const counts = [await left(first, ip), await left(second, ip), await left(first, ip)];
      return counts.every((count, i) => count === FLOOD_POINTS - 1 - i);
    };
    await waitFor(share, 'both replicas to share the budget', 5000);

    const answers = Array.from({ length: 2 * FLOOD_POINTS }, (_, i) =>
      (i % 2 === 0 ? first : second).get('/stats', as('203.0.114.1')),
    );
    const passed = (await Promise.all(answers)).filter(({ status }) => status === 200).length;
    expect(passed, 'of twice as many concurrent requests').to.be.within(FLOOD_POINTS, 1.1 * FLOOD_POINTS);
  });
});
