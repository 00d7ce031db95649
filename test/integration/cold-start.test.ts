import { expect } from 'chai';
import { datasetServer, heldBack } from '../support/dataset-server.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { REBUILD, startService } from '../support/service.js';
import { NO_DATASET } from '../../src/rebuild/pipeline.js';
import { waitFor } from '../support/wait-for.js';

describe('A cold start', function () {
  this.timeout(60_000);

  it('returns 503 initializing for reads and /health, serves the rest, and becomes ready', async () => {
    const origin = heldBack(() => toCsv(packagesNamed(['alpha', 'beta', 'gamma'])));
    const dataset = await datasetServer(origin.listener);
    const service = await startService({ DATASET_URL: dataset.url });
    try {
      await waitFor(() => service.server.rebuilds.progress !== undefined, 'the first rebuild to start');
      const health = await service.get('/health');
      expect(health.status).to.equal(503);
      expect(health.headers.get('Retry-After')).to.equal('2');
      expect(health.body).to.deep.equal({ status: 'initializing', total_packages: 0 });
      for (const path of ['/stats', '/browse', '/search?q=alpha']) {
        expectProblem(await service.get(path), 503, 'initializing');
      }
      expectProblem(await service.get('/search?q=a'), 400, 'invalid_parameter');
      for (const path of ['/ping', '/ready', '/debug-ip'])
        expect((await service.get(path)).status).to.equal(200);
      const rebuilding = await service.get(REBUILD);
      expectProblem(rebuilding, 503, 'rebuilding');
      expect(rebuilding.body).to.include({ phase: 'downloading', rows: 0, last_failure: null });
      expect(Date.parse(rebuilding.body.started_at)).to.be.closeTo(Date.now(), 60_000);

      origin.release();
      await waitFor(async () => (await service.get('/health')).status === 200, 'the service to be ready');
      expect((await service.get('/health')).body).to.deep.equal({ status: 'ok', total_packages: 3 });
      expect((await service.get('/search?q=alpha')).body.count).to.equal(1);
    } finally {
      origin.release();
      await service.end();
      await dataset.close();
    }
  });

  it('without DATASET_URL serves no sample under the name of another registry', async () => {
    const service = await startService({});
    try {
      await waitFor(
        () => service.server.rebuilds.lastFailure !== undefined,
        'the first rebuild to be refused',
      );
      expect(service.server.rebuilds.lastFailure?.reason).to.equal(NO_DATASET);
      expectProblem(await service.get('/search?q=alpha'), 503, 'initializing');
      expect(await service.indices()).to.deep.equal([]);
    } finally {
      await service.end();
    }
  });

  it('with an invalid dataset stays initializing, reports why, and recovers with a rebuild', async () => {
    let csv = 'package_no,name\n1,alpha\n';
    const dataset = await datasetServer((_request, response) => response.end(csv));
    const service = await startService({ DATASET_URL: dataset.url });
    try {
      await waitFor(() => service.server.rebuilds.lastFailure !== undefined, 'the first rebuild to fail');
      await service.idle();
      expectProblem(await service.get('/search?q=alpha'), 503, 'initializing');
      csv = toCsv(packagesNamed(['alpha']));
      const accepted = await service.rebuild();
      expect(accepted.status).to.equal(202);
      expect(accepted.body.last_failure.reason).to.contain(
        'no column `url`: add it, or set PACKAGE_URL_TEMPLATE',
      );
      expect((await service.get('/search?q=alpha')).body.count).to.equal(1);
    } finally {
      await service.end();
      await dataset.close();
    }
  });
});
