import { expect } from 'chai';
import { bundledPackages } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { runCommand } from '../support/spawn-cli.js';
import { servedIndex } from '../support/served-index.js';
import { metaWith } from '../support/snapshot-meta.js';
import { useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { useReplicaStarter } from '../support/replica-starter.js';

describe('An index with an unreadable _meta', function () {
  this.timeout(60_000);
  const packages = bundledPackages().slice(0, 600);
  const suite = useService(() => packages);
  const startReplica = useReplicaStarter(suite);

  /** Overwrites the `_meta` of the served index, as another version of the service might. */
  async function overwriteMeta(_meta: Record<string, unknown>): Promise<void> {
    const index = await servedIndex(suite.service);
    await suite.service.elasticsearch.indices.putMapping({ index, _meta });
    await suite.service.refresh();
  }

  it('is reported, not served', async () => {
    const { service } = suite;
    const meta = metaWith(packages.length);
    const health = async () => (await service.get('/health')).body.status as string;
    for (const unreadable of [
      { ...meta, schema_version: 1 },
      { ...meta, taken_at: '+010000-01-01T00:00:00.000Z' },
      {},
    ]) {
      await overwriteMeta({ ...meta });
      expect(await health()).to.equal('ok');
      await overwriteMeta(unreadable);
      expect(await health(), JSON.stringify(unreadable)).to.equal('unavailable');
    }
    // Served from the last readable state of the snapshot.
    expect((await service.get('/search?q=lib')).status).to.equal(200);
    const fresh = await startReplica();
    expectProblem(await fresh.get('/search?q=lib'), 503, 'search_unavailable');
    expect((await fresh.get('/health')).body).to.deep.equal({ status: 'unavailable', total_packages: 0 });
  });

  it('is replaced by a rebuild', async () => {
    const { service, dataset } = suite;
    const fresh = await startReplica();
    const index = await servedIndex(service);
    const env = { ...service.env, DATASET_URL: dataset.url };
    expect(await runCommand('cli/rebuild', env)).to.include({ code: 0, stderr: '' });
    for (const replica of [service, fresh]) {
      await waitFor(async () => (await replica.get('/health')).status === 200, 'the replica');
      expect(index.endsWith(await replica.snapshot())).to.equal(false);
    }
  });

  it('does not prevent `npm run rollback`, which never selects it', async () => {
    const { service } = suite;
    const readable = await servedIndex(service);
    await suite.publish(packages);
    const unreadable = await servedIndex(service);
    await overwriteMeta({ schema_version: 2 });
    expect(await runCommand('cli/rollback', service.env)).to.include({ code: 0, stderr: '' });
    expect(await servedIndex(service)).to.equal(readable);
    expect(await runCommand('cli/rollback', service.env)).to.include({
      code: 1,
      stderr: `${unreadable} was written by another version of the service: deploy that version first\n`,
    });
    expect(await servedIndex(service)).to.equal(readable);
  });
});
