import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { createRebuildClient } from '../../../src/elasticsearch/elasticsearch.js';
import { createLogger } from '../../../src/util/log.js';
import { retry } from '../../../src/publish/retry.js';
import { datasetServer } from '../../support/dataset-server.js';

describe('An aborted request of a rebuild', () => {
  it('ends at once, even if Elasticsearch does not respond', async () => {
    const stopping = new AbortController();
    let abortedAt = Infinity;
    const silent = await datasetServer(() => {
      abortedAt = performance.now();
      stopping.abort();
    });
    const client = createRebuildClient({ nodes: [new URL(silent.url).origin], apiKey: undefined });
    const log = createLogger('silent');
    const refresh = (signal: AbortSignal) => client.indices.refresh({ index: 'any' }, { signal });
    await rejects(retry(refresh, { signal: stopping.signal, log }));
    expect(performance.now() - abortedAt).to.be.within(0, 200);
    await client.close();
    await silent.close();
  });
});
