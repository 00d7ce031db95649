import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { concurrentTests } from '../support/concurrent-tests.js';
import { datasetServer, trickled, type DatasetServer } from '../support/dataset-server.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { useService } from '../support/service.js';

const PACKAGES = bundledPackages().slice(0, 3000);
const CSV = toCsv(PACKAGES);

const slow: [what: string, listener: RequestListener][] = [
  ['sends nothing more', (_request, response) => void response.writeHead(200).write(CSV.slice(0, 1000))],
  ['sends one byte a second', trickled(CSV.slice(0, 1000), 1, 1000)],
];

/** Starts a service with a dataset server of its own. */
function useServiceAndOrigin() {
  const origin = { listener: ((_request, response) => response.end(CSV)) as RequestListener };
  let server: DatasetServer;
  before(async () => {
    server = await datasetServer((request, response) => origin.listener(request, response));
  });
  const suite = useService(
    () => PACKAGES,
    () => ({ DATASET_URL: server.url, ...UNCACHED }),
  );
  const reading = useBackgroundReader(suite, [PACKAGES.length]);
  after(() => server.close());
  return { origin, suite, reading };
}

describe('A dataset server that stalls', function () {
  this.timeout(60_000);
  const cases = slow.map(([what, stalled]) => ({ what, stalled, ...useServiceAndOrigin() }));

  const itConcurrently = concurrentTests();
  for (const { what, stalled, origin, suite } of cases) {
    itConcurrently(
      `fails the rebuild after half a minute if it ${what}; the old snapshot stays in service, the lock is released`,
      async () => {
        const { service } = suite;
        const served = await service.indices();
        origin.listener = stalled;
        expect((await service.rebuild()).status).to.equal(202);
        const failure = service.server.rebuilds.lastFailure?.reason;
        expect(failure).to.equal(
          'the dataset could not be downloaded: fewer than 10240 bytes arrived within 30 s',
        );
        expect(await service.indices()).to.deep.equal(served);
        origin.listener = (_request, response) => response.writeHead(404).end();
        const next = await service.rebuild();
        expect(next.status).to.equal(202);
        expect(next.body.last_failure.reason).to.equal(failure);
      },
    );
  }

  for (const { reading } of cases) reading.itNoticesNothing();
});
