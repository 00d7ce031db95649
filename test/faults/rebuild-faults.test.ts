import { expect } from 'chai';
import { snapshotIdOf } from '../../src/snapshot/index-names.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { isBulk, isCreation, isFlip, type Matches } from '../support/engine-proxy.js';
import { useProxiedService } from '../support/proxied-service.js';
import { keptIndices } from '../support/served-index.js';
import { SHARED_PACKAGES } from '../support/service.js';

const PACKAGES = SHARED_PACKAGES.slice(0, 300);

const isCreationOfChanges: Matches = (method, path) => method === 'PUT' && path.includes('-changes-2');

describe('A rebuild', function () {
  this.timeout(120_000);
  const suite = useProxiedService(() => PACKAGES, UNCACHED);
  const reading = useBackgroundReader(suite, [PACKAGES.length]);

  it('succeeds although it loses the responses to its requests', async () => {
    const lost = [isCreation, isCreationOfChanges, isBulk, isFlip].map((one) =>
      suite.proxy.loseResponse(one),
    );
    const [before = ''] = await keptIndices(suite.service);
    const snapshot = await suite.publish(PACKAGES);
    await Promise.all(lost);
    expect(await suite.service.indices()).to.have.length(2);
    const { from, to } = (await suite.service.get('/changes')).body;
    expect({ from, to }, 'compared with the previous one').to.deep.equal({
      from: snapshotIdOf(before),
      to: snapshot,
    });
  });

  for (const [what, settings, reason] of [
    ['a write block', { 'index.blocks.write': true }, /rejected a document: cluster_block_exception/],
    ['a rejected document', { 'index.final_pipeline': 'missing' }, /rejected a document: illegal_argument/],
    ['the block of a full disk', { 'index.blocks.read_only_allow_delete': true }, /cluster_block_exception/],
  ] as const) {
    it(`stops at ${what} without leaving anything`, async () => {
      const served = await suite.service.indices();
      const load = suite.proxy.hold('before', isBulk);
      const rebuilt = suite.service.rebuild('&force=true');
      await load.arrived;
      const index = (await suite.service.indices()).filter((name) => !served.includes(name));
      expect(index).to.have.length(1);
      await suite.service.elasticsearch.indices.putSettings({ index, settings });
      load.release();
      await rebuilt;
      expect(await suite.service.indices()).to.deep.equal(served);
      const { status, body } = await suite.service.rebuild('&force=true');
      expect(status).to.equal(202);
      expect(body.last_failure.reason).to.match(reason);
    });
  }

  reading.itNoticesNothing();
});
