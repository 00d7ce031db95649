import { rejects } from 'node:assert/strict';
import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { createLogger } from '../../src/util/log.js';
import { merge } from '../../src/publish/merge.js';
import { createIndex } from '../../src/publish/create.js';
import { replicate } from '../../src/publish/replicate.js';
import { newIndexName, rebuildsIndexOf } from '../../src/snapshot/index-names.js';
import { bundledPackages } from '../support/datasets.js';
import { EngineProxy, isMerge } from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { useProxiedService } from '../support/proxied-service.js';
import { endLock } from '../support/replicas.js';
import { metaWith } from '../support/snapshot-meta.js';
import { newSlug, REBUILD } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** Timeout of each request of a step, in milliseconds. */
const REQUEST_MS = 1000;

describe('A step that outlasts the request timeout', function () {
  this.timeout(120_000);
  const total = 3;
  const step = {
    signal: new AbortController().signal,
    log: createLogger('silent'),
    onBytes: () => undefined,
  };
  let index: string;
  let proxy: EngineProxy;
  let client: Client;
  let impatient: Client;

  beforeEach(async () => {
    const { url } = engines().elasticsearch;
    proxy = await EngineProxy.start(url);
    client = new Client({ node: url });
    impatient = new Client({ node: proxy.url, requestTimeout: REQUEST_MS, maxRetries: 0 });
    index = newIndexName(newSlug(), new Date());
    const meta = metaWith(total);
    await createIndex(client, 'packages', { index, meta }, step);
    // A segment each.
    for (let i = 0; i < total; i++)
      await client.index({ index, document: { name: `lib-${i}` }, refresh: true });
  });

  afterEach(async () => {
    await proxy.close();
    await client.indices.delete({ index, ignore_unavailable: true });
    await Promise.all([client.close(), impatient.close()]);
  });

  it('does not depend on the response to its request: a merge', async () => {
    const held = proxy.hold('after', isMerge);
    await merge(impatient, index, total, step);
    held.release();
    const { indices } = await client.indices.segments({ index });
    const [copy] = [indices[index]?.shards['0'] ?? []].flat();
    expect(copy?.num_search_segments).to.equal(1);
  });

  it('fails if it makes no progress: a copy that no node can hold', async () => {
    await merge(client, index, total, step);
    await replicate(impatient, index, '0', step);
    const message = 'copying the index (INDEX_REPLICAS=1) made no progress for 0.3 seconds';
    const copied = replicate(impatient, index, '1', { ...step, stallMs: 300 });
    await rejects(copied, { message });
  });
});

describe('A merge', function () {
  this.timeout(120_000);
  const packages = bundledPackages().slice(0, 8000);
  const suite = useProxiedService(() => packages, UNCACHED);
  const reading = useBackgroundReader(suite, [packages.length]);

  /** Starts a rebuild that is held before its merge. */
  async function merging() {
    const held = suite.proxy.hold('before', isMerge);
    expect((await suite.service.get(REBUILD)).status).to.equal(202);
    await held.arrived;
    return held;
  }

  it('is reported by /rebuild in bytes', async () => {
    const held = await merging();
    let body: Record<string, unknown> = {};
    await waitFor(async () => {
      ({ body } = await suite.service.get(REBUILD));
      return body['bytes'] !== null;
    }, 'the bytes');
    expect(body).to.include({ phase: 'merging', bytes: 0 });
    expect(body['total_bytes']).to.be.greaterThan(100_000);
    held.release();
    await suite.service.idle();
  });

  it('ends at once when the lock is lost', async () => {
    const { service } = suite;
    const served = await service.indices();
    const held = await merging();
    const state = { index: rebuildsIndexOf(service.slug), id: 'state' };
    await service.elasticsearch.update({
      ...state,
      doc: { owner: 'another', expires_at: Date.now() + 20_000 },
    });
    // With the next report.
    await service.idle(5000).finally(() => held.release());
    expect(service.failure()).to.contain('the lock was lost');
    expect(await service.indices()).to.deep.equal(served);
    const { _source } = await service.elasticsearch.get<{ owner: string }>(state);
    expect(_source?.owner, 'the other lock').to.equal('another');
    await endLock(service);
  });

  reading.itNoticesNothing();
});
