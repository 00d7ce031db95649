import { expect } from 'chai';
import { SAMPLE_RETRY_MS } from '../../src/search/tier-predictor.js';
import { UNCACHED } from '../support/background-reader.js';
import { packagesNamed } from '../support/datasets.js';
import { useProxiedService } from '../support/proxied-service.js';
import { servedIndex } from '../support/served-index.js';
import { waitFor } from '../support/wait-for.js';

const COUNT = 300;
const numbered = (prefix: string) => Array.from({ length: COUNT }, (_, i) => `${prefix}${i}`);

// A sample that cannot be read: test/unit/search/tier-predictor.test.ts.
describe('The prediction of the tiers that a search needs', function () {
  this.timeout(60_000);
  const suite = useProxiedService(
    () => packagesNamed([...numbered('lib-'), ...numbered('x-lib-')]),
    UNCACHED,
  );

  const isSampleRead = (_method: string, path: string) => path.includes('/_search');

  /** Searches with 100 results at most. @returns how many searches Elasticsearch ran for it. */
  async function searchesFor(q: string): Promise<number> {
    const { elasticsearch } = suite.service;
    const index = (await servedIndex(suite.service)) as string;
    const count = async () => {
      const { _all } = await elasticsearch.indices.stats({ index, metric: 'search' });
      return _all.primaries?.search?.query_total ?? NaN;
    };
    const before = await count();
    const { status, body } = await suite.service.get(`/search?limit=100&q=${q}`);
    expect(status).to.equal(200);
    expect(body.count).to.be.within(1, 100);
    return (await count()) - before;
  }

  /** Waits until the sample has been read: until then, both tiers are always searched. */
  const sampled = (q: string) =>
    waitFor(async () => (await searchesFor(q)) === 1, 'the sample to be read', 2 * SAMPLE_RETRY_MS);

  it('searches both tiers while the sample is being read', async () => {
    const hold = suite.proxy.hold('before', isSampleRead);
    expect(await searchesFor('lib-')).to.equal(2);
    await hold.arrived;
    expect(await searchesFor('lib-')).to.equal(2);
    hold.release();
  });

  it('searches the first tier alone if it fills the response', async () => {
    await sampled('lib-');
    expect(await searchesFor('x-lib')).to.equal(1);
  });

  it('searches both tiers if the first does not fill the response', async () => {
    await sampled('lib-');
    for (const q of ['lib-29', 'b-1', 'x-lib-299']) expect(await searchesFor(q)).to.equal(2);
  });

  it('follows the snapshot that is served', async () => {
    await sampled('lib-');
    await suite.publish(packagesNamed([...numbered('lib'), ...numbered('y-lib-')]));
    await sampled('lib');
    expect(await searchesFor('lib-')).to.equal(2);
  });
});
