import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { REBUILD_SECRET, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('A killed Elasticsearch', function () {
  this.timeout(180_000);
  const suite = useService(() => packagesNamed(['alpha', 'beta']));
  const get = (path: string) => suite.service.get(path);

  before(async () => {
    await (await engines()).elasticsearch.kill();
  });

  it('causes 503 search_unavailable within two seconds', async () => {
    for (const path of ['/search?q=alpha', '/browse']) {
      const began = Date.now();
      const answer = await get(path);
      expect(Date.now() - began, 'milliseconds').to.be.lessThan(2000);
      expectProblem(answer, 503, 'search_unavailable');
    }
  });

  it('is reported by /health and /rebuild, while /ping and /stats keep working', async () => {
    await waitFor(async () => (await get('/health')).status === 503, '/health to notice', 3000);
    const health = await get('/health');
    expect(health.body).to.deep.equal({ status: 'unavailable', total_packages: 2 });
    expect(health.headers.get('Retry-After')).to.equal('2');
    expectProblem(await get(`/rebuild?secret=${REBUILD_SECRET}`), 503, 'search_unavailable');
    expect((await get('/ping')).status).to.equal(200);
    expect((await get('/stats')).status).to.equal(200);
  });

  it('is used again as soon as it is back, without intervention', async () => {
    await (await engines()).elasticsearch.restart();
    await waitFor(async () => (await get('/search?q=alpha')).status === 200, 'searches to work', 30_000);
    await waitFor(async () => (await get('/health')).status === 200, '/health to recover', 3000);
    expect((await get('/search?q=alpha')).body.count).to.equal(1);
  });
});

describe('A killed Redis', function () {
  this.timeout(60_000);
  const suite = useService(
    () => packagesNamed(['alpha']),
    () => ({ RATE_LIMIT_POINTS: '3' }),
  );

  it('fails no request: the process counts by itself', async () => {
    const { redis } = await engines();
    expect((await suite.service.get('/stats')).status).to.equal(200);
    await redis.kill();
    try {
      for (let i = 0; i < 3; i++) expect((await suite.service.get('/stats')).status).to.equal(200);
      expectProblem(await suite.service.get('/stats'), 429, 'rate_limited');
    } finally {
      await redis.restart();
    }
  });
});
