import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { SearchPool } from '../../src/elasticsearch/search-pool.js';
import { clean, findExisting, publish, type PublishContext } from '../../src/publish/publish.js';
import { aliasOf } from '../../src/snapshot/index-names.js';
import { packageDocument } from '../../src/snapshot/package-document.js';
import { streamOf } from '../support/batches.js';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { newSlug } from '../support/service.js';
import { metaWith } from '../support/snapshot-meta.js';
import { STEP } from '../support/step.js';

const NAMES = Array.from({ length: 100 }, (_, i) => `package-${i}`);
const OPTIONS = { ...STEP, replicas: '0', retention: 2, progress: { enter: () => {}, change: () => {} } };

describe('publish', () => {
  const alias = aliasOf(newSlug());
  let context: PublishContext;

  before(() => {
    const { url } = engines().elasticsearch;
    const pool = new SearchPool({ nodes: [url], apiKey: undefined });
    context = { client: new Client({ node: url }), pool, exportPool: pool, alias, log: STEP.log };
  });
  after(async () => {
    const { indices } = await findExisting(context, STEP.signal);
    await context.client.indices.delete({ index: indices });
    await Promise.all([context.client.close(), context.pool.close()]);
  });

  /** Publishes a snapshot as a rebuild does. @returns its index. */
  async function publishNames(names: string[], total = names.length): Promise<string> {
    const existing = await findExisting(context, STEP.signal);
    const documents = streamOf([packagesNamed(names).map((entry, i) => packageDocument(entry, i))]);
    const index = await publish(context, existing, { meta: metaWith(total), documents }, OPTIONS);
    await clean(context, existing, index, OPTIONS);
    return index;
  }

  it('serves a hundred documents', async () => {
    const index = await publishNames(NAMES);
    const { served, indices } = await findExisting(context, STEP.signal);
    expect(served).to.deep.include({ index, aliases: [alias] });
    expect(served?.meta).to.deep.include({
      total: 100,
      lineage: { ancestors: [], added: 0, removed: 0, updated: 0 },
    });
    expect(indices).to.deep.equal([index]);
    const { hits } = await context.client.search({ index: alias, size: 100, sort: 'ordinal' });
    expect(hits.hits.map(({ _source }) => (_source as { name: string }).name)).to.deep.equal(NAMES);
  });
});
