import { expect } from 'chai';
import { datasetServer, heldBack, type DatasetServer } from '../support/dataset-server.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { expectInvalid, expectProblem } from '../support/expect-problem.js';
import { expectSearch } from '../support/expect-search.js';
import { REBUILD, startService, type Service } from '../support/service.js';
import { NO_DATASET } from '../../src/rebuild/plan.js';
import { waitFor } from '../support/wait-for.js';

describe('A cold start', function () {
  this.timeout(60_000);

  describe('while the dataset is downloaded', () => {
    const origin = heldBack(() => toCsv(packagesNamed(['alpha', 'beta', 'gamma'])));
    let dataset: DatasetServer;
    let service: Service;
    before(async () => {
      dataset = await datasetServer(origin.listener);
      service = await startService({ DATASET_URL: dataset.url });
      await waitFor(() => service.isRebuilding(), 'the first rebuild to start');
    });
    after(async () => {
      origin.release();
      await service.end();
      await dataset.close();
    });

    it('returns 503 initializing for reads and /health', async () => {
      const { status, headers, body } = await service.get('/health');
      expect([status, headers.get('Retry-After')]).to.deep.equal([503, '2']);
      expect(body).to.deep.equal({ status: 'initializing', total_packages: 0 });
      for (const path of ['/stats', '/browse', '/search?q=alpha'])
        expectProblem(await service.get(path), 503, 'initializing');
    });

    it('serves the rest', async () => {
      await expectInvalid(service, '/search?q=a');
      for (const path of ['/ping', '/ready', '/debug-ip'])
        expect((await service.get(path)).status).to.equal(200);
      const rebuilding = await service.get(REBUILD);
      expectProblem(rebuilding, 503, 'rebuilding');
      expect(rebuilding.body).to.include({ phase: 'downloading', rows: 0, last_failure: null });
      expect(Date.parse(rebuilding.body.started_at)).to.be.closeTo(Date.now(), 60_000);
    });

    it('becomes ready once it has loaded the dataset', async () => {
      origin.release();
      await waitFor(async () => (await service.get('/health')).status === 200, 'the service to be ready');
      expect((await service.get('/health')).body).to.deep.equal({ status: 'ok', total_packages: 3 });
      await expectSearch(service, 'alpha', ['alpha']);
    });
  });

  it('without DATASET_URL serves no sample under the name of another registry', async () => {
    const service = await startService({});
    try {
      await waitFor(() => service.failure() !== undefined, 'the first rebuild to be refused');
      expect(service.failure()).to.equal(NO_DATASET);
      expectProblem(await service.get('/search?q=alpha'), 503, 'initializing');
      expect(await service.indices()).to.deep.equal([]);
    } finally {
      await service.end();
    }
  });

  it('with an invalid dataset lasts until a rebuild succeeds', async () => {
    let csv = 'package_no,name\n1,alpha\n';
    const dataset = await datasetServer((_request, response) => response.end(csv));
    const service = await startService({ DATASET_URL: dataset.url });
    try {
      await waitFor(() => service.failure() !== undefined, 'the first rebuild to fail');
      await service.idle();
      expectProblem(await service.get('/search?q=alpha'), 503, 'initializing');
      csv = toCsv(packagesNamed(['alpha']));
      const accepted = await service.rebuild();
      expect(accepted.status).to.equal(202);
      expect(accepted.body.last_failure.reason).to.contain(
        'no column `url`: add it, or set PACKAGE_URL_TEMPLATE',
      );
      await expectSearch(service, 'alpha', ['alpha']);
    } finally {
      await service.end();
      await dataset.close();
    }
  });
});
