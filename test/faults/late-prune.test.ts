import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { flip } from '../../src/publish/flip.js';
import { createIndex } from '../../src/publish/create.js';
import { discard, prune } from '../../src/publish/prune.js';
import { aliasOf, newIndexName } from '../../src/snapshot/index-names.js';
import { packagesNamed } from '../support/datasets.js';
import { useProxiedService } from '../support/proxied-service.js';
import { keptIndices } from '../support/served-index.js';
import { removeRegistry } from '../support/registries.js';
import { newSlug, rebuildHere } from '../support/service.js';
import { STEP } from '../support/step.js';
import { waitFor } from '../support/wait-for.js';

describe('A discarded index', function () {
  this.timeout(120_000);
  const packages = packagesNamed(['alpha', 'beta']);
  const suite = useProxiedService(() => packages);

  /** Creates an empty index. */
  async function create(alias = suite.service.alias): Promise<string> {
    const { elasticsearch, server } = suite.service;
    const index = newIndexName(alias, new Date());
    const meta = server.snapshots.current?.meta ?? expect.fail('no snapshot is served');
    await createIndex(elasticsearch, 'packages', { index, meta }, STEP);
    return index;
  }

  it('is not deleted by a process whose snapshot is no longer served', async () => {
    const { alias, elasticsearch } = suite.service;
    await suite.publish(packages);
    const [, previous = ''] = await keptIndices(suite.service);
    const index = await create();
    await prune(elasticsearch, alias, [index], { ...STEP, current: previous });
    expect(await suite.service.indices()).to.include(index);
    await discard(elasticsearch, index);
  });

  for (const isServed of [true, false])
    it(`is gone before a rebuild that fails, if a snapshot ${isServed ? 'is' : 'was never'} served`, async () => {
      const { elasticsearch } = suite.service;
      const slug = newSlug();
      if (isServed) await rebuildHere({ DATASET_URL: suite.dataset.url }, slug);
      const index = await create(aliasOf(slug));
      await rejects(rebuildHere({ DATASET_URL: 'file:///nowhere/names.csv' }, slug), /there is no file/);
      expect(await elasticsearch.indices.exists({ index })).to.equal(false);
      await removeRegistry(slug, elasticsearch);
    });

  it('is kept if it is live because only the response to its flip was lost', async () => {
    const { alias, elasticsearch } = suite.service;
    const [current] = await keptIndices(suite.service);
    const index = await create();
    await flip(elasticsearch, alias, { from: current, to: index }, STEP);
    await discard(elasticsearch, index);
    expect(await keptIndices(suite.service)).to.deep.equal([index, current]);
    // Replaces the empty index.
    await suite.publish(packages);
  });

  it('is never the previous snapshot, even if the current index was deleted by hand', async () => {
    const { elasticsearch } = suite.service;
    await suite.publish(packages);
    const [current = '', previous] = await keptIndices(suite.service);
    await elasticsearch.indices.delete({ index: current });
    // The next check finds no index, and a cold start builds one.
    const served = async () => (await keptIndices(suite.service))[0];
    await waitFor(async () => (await served()) !== undefined, 'a cold start', 20_000);
    expect(await served()).not.to.equal(current);
    expect((await keptIndices(suite.service))[1]).to.equal(previous);
    // The rebuild is counted before this replica has read the alias.
    const search = () => suite.service.get('/search?q=alpha');
    await waitFor(async () => (await search()).status === 200, 'the new snapshot to be served');
    expect((await search()).body.count).to.equal(1);
  });
});
