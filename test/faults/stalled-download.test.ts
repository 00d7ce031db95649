import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { concurrentTests } from '../support/concurrent-tests.js';
import { datasetServer, trickled } from '../support/dataset-server.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { startService } from '../support/service.js';
import { until } from '../support/until.js';

const PACKAGES = bundledPackages().slice(0, 3000);
const CSV = toCsv(PACKAGES);

describe('A dataset server that stalls', function () {
  this.timeout(90_000);
  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    await engines();
  });
  const test = concurrentTests();

  const slow: [what: string, listener: RequestListener][] = [
    ['sends nothing more', (_request, response) => void response.writeHead(200).write(CSV.slice(0, 1000))],
    ['sends one byte a second', trickled(CSV.slice(0, 1000), 1, 1000)],
  ];
  for (const [what, stalled] of slow) {
    test(`fails the rebuild after half a minute if it ${what}; the old snapshot is served, the lock is free`, async () => {
      let listener: RequestListener = (_request, response) => response.end(CSV);
      const origin = await datasetServer((request, response) => listener(request, response));
      const service = await startService({ DATASET_URL: origin.url });
      try {
        const search = () => service.get('/search?q=lib');
        await until(async () => (await search()).status === 200, 'the first snapshot', 30_000);
        await service.idle();
        const [served, { text: before }] = [await service.indices(), await search()];
        listener = stalled;
        expect((await service.rebuild()).status).to.equal(202);
        const failure = service.server.rebuilds.lastFailure?.reason;
        expect(failure).to.equal(
          'the dataset could not be downloaded: fewer than 10240 bytes arrived within 30 s',
        );
        expect(await service.indices()).to.deep.equal(served);
        expect((await search()).text).to.equal(before);
        listener = (_request, response) => response.writeHead(404).end();
        const next = await service.rebuild();
        expect(next.status).to.equal(202);
        expect(next.body.last_failure.reason).to.equal(failure);
      } finally {
        await service.end();
        await origin.close();
      }
    });
  }
});
