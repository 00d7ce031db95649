import { expect } from 'chai';
import { UNCACHED } from '../support/background-reader.js';
import { packagesNamed } from '../support/datasets.js';
import { servedIndex } from '../support/served-index.js';
import { useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const COUNT = 300;
const numbered = (prefix: string) => Array.from({ length: COUNT }, (_, i) => `${prefix}${i}`);

describe('The tiers that a search requests', function () {
  this.timeout(60_000);
  const suite = useService(
    () => packagesNamed([...numbered('lib-'), ...numbered('x-lib-')]),
    () => UNCACHED,
  );

  /** Searches with 100 results at most. @returns how many searches Elasticsearch ran meanwhile. */
  async function searchesFor(q: string): Promise<number> {
    const { elasticsearch } = suite.service;
    const index = await servedIndex(suite.service);
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

  it('are the first alone if it fills the response, once names are known', async () => {
    expect(await searchesFor('lib-')).to.be.at.least(2);
    // Until the sample is complete, each search lets another one read more names.
    const isComplete = async () => {
      for (let i = 0; i < 5; i++) if ((await searchesFor('lib-')) !== 1) return false;
      return true;
    };
    await waitFor(isComplete, 'the sample of names');
    expect(await searchesFor('x-lib')).to.equal(1);
    for (const q of ['lib-29', 'b-1', 'x-lib-299']) expect(await searchesFor(q)).to.equal(2);
    expect(await searchesFor('lib-&total=true')).to.equal(2);
  });
});
