import { expect } from 'chai';
import { snapshotIdOf } from '../../../src/snapshot/index-names.js';
import { bundledPackages, datasetFile, toCsv, type DatasetFile } from '../../support/datasets.js';
import { servedIndex } from '../../support/served-index.js';
import { newSlug, REBUILD, startService, type Service } from '../../support/service.js';
import { waitFor } from '../../support/wait-for.js';

describe('A cold start of three replicas at once', function () {
  this.timeout(120_000);

  let dataset: DatasetFile;
  let replicas: Service[];
  let first: Service;
  before(async () => {
    dataset = await datasetFile(toCsv(bundledPackages().slice(0, 600)));
    const slug = newSlug();
    const start = () => startService({ DATASET_URL: dataset.url }, slug);
    replicas = await Promise.all([start(), start(), start()]);
    [first] = replicas as [Service];
  });
  after(async () => {
    for (const replica of replicas.slice(1)) await replica.stop();
    await first.end();
    await dataset.remove();
  });

  /** Waits for the index after this one. Expects that all replicas serve it within two seconds. */
  async function expectServedByAll(before?: string): Promise<void> {
    const served = () => servedIndex(first).catch(() => before);
    await waitFor(async () => (await served()) !== before, 'the flip', 60_000);
    const flipped = Date.now();
    const snapshot = snapshotIdOf((await served()) ?? '');
    const isServed = async (replica: Service) => (await replica.snapshot()) === snapshot;
    await Promise.all(replicas.map((replica) => waitFor(() => isServed(replica), 'a replica', 5000)));
    expect(Date.now() - flipped, 'milliseconds').to.be.lessThan(2000);
    for (const replica of replicas) await replica.idle();
  }

  it('builds one snapshot, which all serve', async () => {
    await expectServedByAll();
    expect(await first.indices()).to.have.length(1);
  });

  it('is followed by one rebuild that all serve', async () => {
    const before = await servedIndex(first);
    await first.get(`${REBUILD}&force=true`);
    await expectServedByAll(before);
  });
});
