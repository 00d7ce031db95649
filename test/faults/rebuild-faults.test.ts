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

  reading.itNoticesNothing();
});
