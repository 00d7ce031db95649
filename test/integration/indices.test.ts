import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { createIndex, seal, settle } from '../../src/rebuild/indices.js';
import { newIndexName } from '../../src/rebuild/index-names.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { newSlug } from '../support/service.js';

describe("A build's index", () => {
  const index = newIndexName(newSlug(), new Date());
  let client: Client;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    client = new Client({ node: (await engines()).elasticsearch.url });
  });

  after(async () => {
    await client.indices.delete({ index, ignore_unavailable: true });
    await client.close();
  });

  it('is refused while a shard has more than one segment, and accepted as soon as it is merged', async () => {
    const meta = {
      schema_version: 1 as const,
      total: 2,
      source: 'registry.example',
      taken_at: new Date().toISOString(),
      dataset_digest: '',
    };
    await createIndex(client, index, 1, meta);
    for (const no of [1, 2]) {
      const document = { no, ordinal: no - 1, name: `package-${no}`, version: 'latest', url: '', entry: '' };
      await client.index({ index, document, refresh: true });
    }
    const failure = await settle(client, index, '0').catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error).with.property('message').that.contains('2 segments');
    await seal(client, index);
    await settle(client, index, '0');
  });
});
