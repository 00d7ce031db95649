import { expect } from 'chai';
import { datasetServer, heldBack, type DatasetServer } from '../support/dataset-server.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { REBUILD_SECRET, startService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('A cold start', () => {
  const origin = heldBack(() => toCsv(packagesNamed(['alpha', 'beta', 'gamma'])));
  let dataset: DatasetServer | undefined;
  let service: Service;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    dataset = await datasetServer(origin.listener);
    service = await startService({ DATASET_URL: dataset.url });
    await waitFor(() => service.server.rebuilds.progress !== undefined, 'the first build to start');
  });

  after(async () => {
    origin.release();
    await service.end();
    await dataset?.close();
  });

  it('returns 503 initializing for /health, in its own format', async () => {
    const answer = await service.get('/health');
    expect(answer.status).to.equal(503);
    expect(answer.headers.get('Retry-After')).to.equal('2');
    expect(answer.body).to.deep.equal({ status: 'initializing', total_packages: 0 });
  });

  it('returns 503 initializing for reads, but still 400 for invalid parameters', async () => {
    for (const path of ['/stats', '/browse', '/search?q=alpha']) {
      expectProblem(await service.get(path), 503, 'initializing');
    }
    expectProblem(await service.get('/search?q=a'), 400, 'invalid_parameter');
  });

  it('serves /ping and /debug-ip', async () => {
    expect((await service.get('/ping')).status).to.equal(200);
    expect((await service.get('/debug-ip')).status).to.equal(200);
  });

  it('returns 503 rebuilding for /rebuild, with the progress of the first build', async () => {
    const answer = await service.get(`/rebuild?secret=${REBUILD_SECRET}`);
    expectProblem(answer, 503, 'rebuilding');
    expect(answer.body).to.include({ phase: 'downloading', rows: 0, last_failure: null });
    expect(Date.parse(answer.body.started_at)).to.be.closeTo(Date.now(), 60_000);
  });

  it('becomes ready automatically', async () => {
    origin.release();
    await waitFor(async () => (await service.get('/health')).status === 200, 'the service to be ready');
    expect((await service.get('/health')).body).to.deep.equal({ status: 'ok', total_packages: 3 });
    expect((await service.get('/search?q=alpha')).body.count).to.equal(1);
  });
});

describe('A cold start with a dataset that is invalid at first', function () {
  this.timeout(30_000);

  it('stays initializing, reports why at /rebuild, and recovers with a rebuild', async () => {
    let csv = 'package_no,name\n1,alpha\n';
    const dataset = await datasetServer((_request, response) => response.end(csv));
    const service = await startService({ DATASET_URL: dataset.url });
    try {
      await waitFor(() => service.server.rebuilds.lastFailure !== undefined, 'the first build to fail');
      expectProblem(await service.get('/search?q=alpha'), 503, 'initializing');
      csv = toCsv(packagesNamed(['alpha']));
      const accepted = await service.rebuild();
      expect(accepted.status).to.equal(202);
      expect(accepted.body.last_failure.reason).to.match(
        /no column `url`: add it, or set PACKAGE_URL_TEMPLATE/,
      );
      expect((await service.get('/search?q=alpha')).body.count).to.equal(1);
    } finally {
      await service.end();
      await dataset.close();
    }
  });
});
