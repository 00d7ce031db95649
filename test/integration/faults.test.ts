import { expect } from 'chai';
import { bundledPackages, datasetFile, toCsv, type DatasetFile } from '../support/datasets.js';
import { datasetServer, heldBack } from '../support/dataset-server.js';
import { EngineProxy } from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { Program } from '../support/program.js';
import { Reader } from '../support/reader.js';
import { REBUILD, REBUILD_SECRET, useService } from '../support/service.js';
import { until } from '../support/until.js';

/** Longer than a lock outlives the process that had it. */
const LOCK_TIMEOUT_MS = 15_000;

const OLD = bundledPackages().slice(0, 3000);
const NEW = bundledPackages().slice(0, 20_000);

describe('A rebuilding process that is killed', function () {
  this.timeout(90_000);
  const suite = useService(() => OLD);
  let dataset: DatasetFile;
  let proxy: EngineProxy;
  let reader: Reader;

  before(async () => {
    dataset = await datasetFile(toCsv(NEW));
    proxy = await EngineProxy.start((await engines()).elasticsearch.url);
    reader = new Reader(suite.service, [OLD.length, NEW.length], 'lib');
  });

  after(async () => {
    await reader.stop();
    await proxy.close();
    await dataset.remove();
  });

  /** Begins a rebuild in a process of its own, which can be killed when `there` resolves. */
  async function beginRebuild(datasetUrl: string): Promise<Program> {
    const { redis } = await engines();
    const builder = new Program('src/main.ts', {
      PORT: '0',
      ELASTICSEARCH_URL: proxy.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: suite.service.slug,
      DATASET_URL: datasetUrl,
      REBUILD_SECRET,
    });
    const [, url] = await builder.prints(/"url":"([^"]+)"/, 30_000);
    expect((await fetch(`${url}${REBUILD}&force=true`)).status).to.equal(202);
    return builder;
  }

  /** The next rebuild, on another replica, goes through, and nothing of the killed one is left. */
  async function expectRecovery(): Promise<void> {
    await until(
      async () => (await suite.service.get(`${REBUILD}&force=true`)).status === 202,
      'the lock to end',
      LOCK_TIMEOUT_MS,
    );
    await suite.service.idle();
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect((await suite.service.get('/health')).body.total_packages).to.equal(OLD.length);
    // What is served, and the generation before it.
    expect(await suite.service.indices()).to.have.length(2);
  }

  it('while it downloads', async () => {
    const held = heldBack(() => toCsv(NEW));
    const origin = await datasetServer(held.listener);
    const builder = await beginRebuild(origin.url);
    await builder.stop('SIGKILL');
    held.release();
    await origin.close();
    await expectRecovery();
  });

  const steps: [
    what: string,
    when: 'before' | 'after',
    matches: (method: string, path: string) => boolean,
  ][] = [
    [
      'before its index is there',
      'before',
      (method, path) => method === 'PUT' && path.includes('-packages-'),
    ],
    ['when its index is there', 'after', (method, path) => method === 'PUT' && path.includes('-packages-')],
    ['before it loads', 'before', (_method, path) => path.includes('_bulk')],
    ['while it loads', 'after', (_method, path) => path.includes('_bulk')],
    ['while it merges', 'after', (_method, path) => path.includes('_forcemerge')],
    ['while it verifies', 'before', (_method, path) => path.includes('_count')],
    ['before the flip', 'before', (_method, path) => path.startsWith('/_aliases')],
  ];
  for (const [what, when, matches] of steps) {
    it(`${what}: the old data is served, and the next rebuild goes through`, async () => {
      const hold = proxy.hold(when, matches);
      const builder = await beginRebuild(dataset.url);
      await hold.arrived;
      await builder.stop('SIGKILL');
      hold.release();
      expect((await suite.service.get('/health')).body.total_packages).to.equal(OLD.length);
      await expectRecovery();
    });
  }

  it('right after the flip: the new data is served, and the next rebuild goes through', async () => {
    const hold = proxy.hold('after', (_method, path) => path.startsWith('/_aliases'));
    const builder = await beginRebuild(dataset.url);
    await hold.arrived;
    await builder.stop('SIGKILL');
    hold.release();
    await until(
      async () => (await suite.service.get('/health')).body.total_packages === NEW.length,
      'the new data',
      3000,
    );
    await expectRecovery();
  });

  it('is not noticed by readers', async () => {
    await reader.stop();
    expect(reader.failures).to.deep.equal([]);
    expect(reader.requests).to.be.greaterThan(1000);
  });
});

describe('A rebuild that meets a fault', function () {
  this.timeout(90_000);
  const suite = useService(() => OLD);
  let reader: Reader;

  before(() => {
    reader = new Reader(suite.service, [OLD.length], 'lib');
  });

  after(() => reader.stop());

  /** A rebuild in which the new index is changed while it is loaded. */
  async function rebuildDisturbed(settings: object): Promise<string | undefined> {
    const { elasticsearch, server, alias } = suite.service;
    const served = await suite.service.indices();
    await suite.dataset.write(toCsv(bundledPackages()));
    expect((await suite.service.get(REBUILD)).status).to.equal(202);
    let index: string | undefined;
    await until(async () => {
      const all = await elasticsearch.indices.get({ index: `${alias}-*` }, { ignore: [404] });
      index = Object.keys(all).find((name) => !served.includes(name));
      return index !== undefined;
    }, 'the new index');
    await elasticsearch.indices.putSettings({ index: index as string, settings });
    await suite.service.idle();
    expect(await suite.service.indices()).to.deep.equal(served);
    return server.rebuilds.lastFailure?.reason;
  }

  it('stops at a block on writes, and leaves nothing behind', async () => {
    expect(await rebuildDisturbed({ 'index.blocks.write': true })).to.match(
      /Elasticsearch refused a document: cluster_block_exception/,
    );
  });

  it('stops at the block of a full disk, and leaves nothing behind', async () => {
    expect(await rebuildDisturbed({ 'index.blocks.read_only_allow_delete': true })).to.match(
      /cluster_block_exception/,
    );
  });

  it('is not noticed by readers', async () => {
    await reader.stop();
    expect(reader.failures).to.deep.equal([]);
    expect(reader.requests).to.be.greaterThan(100);
  });
});
