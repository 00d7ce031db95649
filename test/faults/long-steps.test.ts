import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { createLogger } from '../../src/log.js';
import { createIndex, waitForReplicas } from '../../src/rebuild/indices.js';
import { newIndexName } from '../../src/search/index-names.js';
import { MAPPING_VERSION } from '../../src/search/generation.js';
import { bulkLoad } from '../../src/rebuild/bulk-load.js';
import { seal } from '../../src/rebuild/force-merge.js';
import { StalledError } from '../../src/rebuild/retry.js';
import type { Row } from '../../src/rebuild/rows.js';
import { bundledPackages } from '../support/datasets.js';
import { EngineProxy } from '../support/engine-proxy.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { newSlug, REBUILD, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const PACKAGES = bundledPackages();
/** Copies of the bundled packages, under other numbers, so that the merge takes some seconds. */
const COPIES = 4;

describe('A step that outlasts the request timeout', function () {
  this.timeout(180_000);
  const index = newIndexName(newSlug(), new Date());
  const total = PACKAGES.length * COPIES;
  const reported: number[] = [];
  const step = {
    signal: new AbortController().signal,
    log: createLogger('silent', false),
    onBytes: (done: number) => reported.push(done),
  };
  let proxy: EngineProxy;
  let client: Client;
  let impatient: Client;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    const { url } = (await engines()).elasticsearch;
    proxy = await EngineProxy.start(url);
    client = new Client({ node: url });
    impatient = new Client({ node: proxy.url, requestTimeout: 1000, maxRetries: 0 });
    const meta = {
      schema_version: 1 as const,
      total,
      source: 'registry.example',
      taken_at: new Date().toISOString(),
      dataset_digest: '',
      mapping_version: MAPPING_VERSION,
      has_package_no: true,
    };
    await createIndex(client, 'packages', { index, shards: 1, meta }, new AbortController().signal);
    const rows = async function* (): AsyncGenerator<Row[]> {
      for (let line = 2; line < total + 2; line += 1000) {
        yield Array.from({ length: Math.min(1000, total + 2 - line) }, (_, i) => {
          const no = line + i - 1;
          const entry = PACKAGES[no % PACKAGES.length] as (typeof PACKAGES)[number];
          return { line: line + i, entry: { ...entry, name: `${entry.name}-${no}`, no } };
        });
        await Promise.resolve();
      }
    };
    const dataset = {
      total,
      duplicateLines: new Set<number>(),
      urlHost: '',
      ordinalOf: (no: number) => no - 1,
    };
    await bulkLoad(client, index, rows(), dataset, {
      throttled: false,
      ...step,
      onRows: () => undefined,
    });
  });

  after(async () => {
    await client.indices.delete({ index, ignore_unavailable: true });
    await Promise.all([client.close(), impatient.close(), proxy.close()]);
  });

  it('fails if it makes no progress: a merge that never starts', async () => {
    const requested = proxy.hold('before', (_method, path) => path.includes('_forcemerge'));
    const viaProxy = new Client({ node: proxy.url, requestTimeout: 10_000, maxRetries: 0 });
    const failure = await seal(viaProxy, index, total, { ...step, stallMs: 3000 }).catch(
      (error: unknown) => error,
    );
    requested.release();
    await viaProxy.close();
    expect(failure).to.be.instanceOf(StalledError);
    expect(failure).to.have.property('message', 'the merge made no progress for 3 seconds');
  });

  it('succeeds as long as it makes progress: a merge', async () => {
    const began = performance.now();
    // The previous test may have left a merge request in flight.
    await seal(impatient, index, total, step);
    expect(performance.now() - began, 'milliseconds of the merge').to.be.greaterThan(1000);
    await waitForReplicas(impatient, index, '0', step);
  });

  it('fails if it makes no progress: a copy that no node can hold', async () => {
    const failure = await waitForReplicas(impatient, index, '1', { ...step, stallMs: 1000 }).catch(
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(StalledError);
    expect(failure).to.have.property(
      'message',
      'copying the index (INDEX_REPLICAS=1) made no progress for 1 seconds',
    );
  });
});

describe('A merge', function () {
  this.timeout(300_000);
  const isMerge = (_method: string, path: string) => path.includes('_forcemerge');
  let proxy: EngineProxy;
  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    proxy = await EngineProxy.start((await engines()).elasticsearch.url);
  });
  const suite = useService(
    () => PACKAGES.slice(0, 20_000),
    () => ({ ELASTICSEARCH_URL: proxy.url, ...UNCACHED }),
  );
  const reading = useBackgroundReader(suite, [20_000]);
  after(() => proxy.close());

  it('is reported by /rebuild in bytes', async () => {
    const merge = proxy.hold('before', isMerge);
    expect((await suite.service.get(REBUILD)).status).to.equal(202);
    await merge.arrived;
    let body: Record<string, unknown> = {};
    await waitFor(async () => {
      ({ body } = await suite.service.get(REBUILD));
      return body.bytes !== null;
    }, 'the bytes').finally(() => merge.release());
    expect(body).to.include({ phase: 'merging', bytes: 0 });
    expect(body.total_bytes).to.be.greaterThan(100_000);
    await suite.service.idle();
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
  });

  it('ends at once when the lock is lost', async () => {
    const served = await suite.service.indices();
    const redis = new Redis((await engines()).redis.url);
    const merge = proxy.hold('before', isMerge);
    expect((await suite.service.get(REBUILD)).status).to.equal(202);
    await merge.arrived;
    await redis.set(`${suite.service.slug}:rebuild:lock`, 'another', 'PX', 8000);
    await suite.service.idle(5000);
    merge.release();
    await redis.del(`${suite.service.slug}:rebuild:lock`);
    redis.disconnect();
    expect(suite.service.server.rebuilds.lastFailure?.reason).to.contain('the lock was lost');
    expect(await suite.service.indices()).to.deep.equal(served);
  });

  it('continues after Elasticsearch was killed and restarted during it', async () => {
    const { elasticsearch } = await engines();
    const merge = proxy.hold('after', isMerge);
    expect((await suite.service.get(REBUILD)).status).to.equal(202);
    await merge.arrived;
    reading.engineMayBeAway = true;
    await elasticsearch.kill();
    merge.release();
    await elasticsearch.restart();
    await waitFor(async () => (await suite.service.get('/health')).status === 200, 'Elasticsearch', 90_000);
    reading.engineMayBeAway = false;
    await suite.service.idle(180_000);
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect(await suite.service.indices()).to.have.length(2);
  });

  reading.itNoticesNothing();
});
