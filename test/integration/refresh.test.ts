import { expect } from 'chai';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('A periodic refresh after a rollback', function () {
  this.timeout(60_000);
  const suite = useService(
    () => packagesNamed(['first']),
    () => ({ REBUILD_INTERVAL_SECONDS: '1' }),
  );

  /** Waits until the only package has this name. */
  async function serves(name: string): Promise<void> {
    const first = async () => (await suite.service.get('/browse')).body.results[0].name as string;
    await waitFor(async () => (await first()) === name, name, 20_000);
  }

  it('builds neither the dataset that was rolled back nor the one being served, but every new one', async () => {
    await suite.dataset.write(toCsv(packagesNamed(['second'])));
    await serves('second');
    const { elasticsearch, redis } = await engines();
    // A refresh may hold the lock at that moment.
    await waitFor(async () => {
      const rollback = new SpawnedCli('src/cli/rollback.ts', {
        ELASTICSEARCH_URL: elasticsearch.url,
        REDIS_URL: redis.url,
        REGISTRY_SLUG: suite.service.slug,
      });
      return (await rollback.exit()) === 0;
    }, 'the rollback');
    await serves('first');
    const builds = await suite.service.indices();
    const { counts } = suite.service.server.rebuilds;
    const { unchanged } = counts;
    await waitFor(() => counts.unchanged >= unchanged + 3, 'three refreshes', 20_000);
    expect(await suite.service.indices()).to.deep.equal(builds);
    await serves('first');

    await suite.dataset.write(toCsv(packagesNamed(['third'])));
    await serves('third');
  });
});
