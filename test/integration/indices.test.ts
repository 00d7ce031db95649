import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { createIndex } from '../../src/publish/create.js';
import { newIndexName } from '../../src/snapshot/index-names.js';
import { load } from '../../src/publish/load.js';
import { packageDocument } from '../../src/snapshot/package-document.js';
import { assertOneSegment, merge } from '../../src/publish/merge.js';
import { streamOf } from '../support/batches.js';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { newSlug } from '../support/service.js';
import { metaWith } from '../support/snapshot-meta.js';
import { STEP } from '../support/step.js';

describe('A new index', () => {
  const index = newIndexName(newSlug(), new Date());
  const meta = metaWith(2);
  const step = { ...STEP, onBytes: () => undefined };
  let client: Client;

  before(() => {
    client = new Client({ node: engines().elasticsearch.url });
  });

  after(async () => {
    await client.indices.delete({ index, ignore_unavailable: true });
    await client.close();
  });

  it('is accepted only once it is merged to one segment', async () => {
    await createIndex(client, 'packages', { index, meta }, step);
    for (const no of [1, 2]) {
      const document = { no, ordinal: no - 1, name: `package-${no}`, version: 'latest', url: '', entry: '' };
      await client.index({ index, document, refresh: true });
    }
    const failure = await assertOneSegment(client, index, step).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error).with.property('message').that.contains('2 segments');
    await merge(client, index, 2, step);
    await assertOneSegment(client, index, step);
  });

  it('is rejected if one of its documents is missing', async () => {
    const failure = await merge(client, index, 3, { ...step, stallMs: 1000 }).catch(
      (error: unknown) => error,
    );
    expect(failure).to.have.property('message', `${index} has 2 documents instead of 3`);
  });

  it('is not recreated by a load that continues after its removal', async () => {
    const removed = newIndexName(newSlug(), new Date());
    await createIndex(client, 'packages', { index: removed, meta }, step);
    await client.indices.delete({ index: removed });
    const documents = streamOf([packagesNamed(['alpha', 'beta']).map(packageDocument)]);
    const failure = await load(client, removed, documents, { inFlight: 2, ...step }).catch(
      (error: unknown) => error,
    );
    expect(failure)
      .to.have.property('message')
      .that.matches(/rejected a document: index_not_found_exception/);
    expect(await client.indices.exists({ index: removed })).to.equal(false);
  });
});
