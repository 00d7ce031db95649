import { expect } from 'chai';
import { snapshotIdOf } from '../../../src/snapshot/index-names.js';
import { bundledPackages, datasetFile, toCsv } from '../../support/datasets.js';
import { servedIndex } from '../../support/served-index.js';
import { newSlug, REBUILD, startService, type Service } from '../../support/service.js';
import { waitFor } from '../../support/wait-for.js';

describe('A cold start of three replicas at once', function () {
  this.timeout(120_000);

  it('builds once, and all serve it, and the next one, within two seconds of the flip', async () => {
    const dataset = await datasetFile(toCsv(bundledPackages().slice(0, 600)));
    const slug = newSlug();
    const replicas = await Promise.all(
      Array.from({ length: 3 }, () => startService({ DATASET_URL: dataset.url }, slug)),
    );
    try {
      const [first] = replicas as [Service];
      await waitFor(
        async () => (await servedIndex(first).catch(() => undefined)) !== undefined,
        'the flip',
        60_000,
      );
      const expectWithinTwoSeconds = async (isReady: (replica: Service) => Promise<boolean>) => {
        const flipped = Date.now();
        await Promise.all(replicas.map((replica) => waitFor(() => isReady(replica), 'a replica', 5000)));
        expect(Date.now() - flipped, 'milliseconds').to.be.lessThan(2000);
      };
      await expectWithinTwoSeconds(async (replica) => (await replica.get('/health')).status === 200);
      await waitFor(() => replicas.every(({ server }) => server.rebuilds.progress === undefined), 'the end');
      expect(await first.indices()).to.have.length(1);

      const before = await servedIndex(first);
      await first.get(`${REBUILD}&force=true`);
      await waitFor(async () => (await servedIndex(first)) !== before, 'the next flip', 60_000);
      const snapshot = snapshotIdOf((await servedIndex(first)) ?? '');
      await expectWithinTwoSeconds(
        async (replica) => (await replica.get('/stats')).headers.get('X-Snapshot') === snapshot,
      );
      await first.idle();
    } finally {
      for (const replica of replicas.slice(1)) await replica.stop();
      await replicas[0]?.end();
      await dataset.remove();
    }
  });
});
