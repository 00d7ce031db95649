import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { bundledPackages, datasetFile, toCsv, type DatasetFile } from '../support/datasets.js';
import { datasetServer, heldBack } from '../support/dataset-server.js';
import { EngineProxy, type Hold } from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { REBUILD, REBUILD_SECRET, request, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { isRunning, temporaryFilesOf, workersOf } from '../support/worker-processes.js';

/** Longer than a lock outlives the process that had it. */
const LOCK_TIMEOUT_MS = 15_000;

const OLD = bundledPackages().slice(0, 3000);
const NEW = bundledPackages().slice(0, 20_000);

/**
 * As many rows as take seconds to check. Made in pieces, because the service that is read runs in this process, too: a
 * search that is answered while the event loop is blocked for 1.5 s counts as not answered.
 */
async function longCsv(): Promise<string> {
  const pieces = ['name,url\n'];
  for (let from = 0; from < 1_500_000; from += 10_000) {
    const rows = Array.from(
      { length: 10_000 },
      (_, i) => `name-${from + i},https://registry.example/${from + i}\n`,
    );
    pieces.push(rows.join(''));
    await pause(1);
  }
  return pieces.join('');
}

/** What is killed: a replica with its worker, as a machine that fails; the worker alone; or the server alone. */
const KILLED = ['replica', 'worker', 'server'] as const;

describe('A rebuild is killed', function () {
  this.timeout(90_000);
  const suite = useService(
    () => OLD,
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [OLD.length, NEW.length]);
  let dataset: DatasetFile;
  let proxy: EngineProxy;
  const builders: SpawnedCli[] = [];
  const holds: Hold[] = [];

  before(async () => {
    dataset = await datasetFile(toCsv(NEW));
    proxy = await EngineProxy.start((await engines()).elasticsearch.url);
  });

  afterEach(async () => {
    for (const hold of holds.splice(0)) hold.release();
    await Promise.all(builders.splice(0).map((builder) => builder.stop()));
  });

  after(async () => {
    await proxy.close();
    await dataset.remove();
  });

  function holdNext(...rule: Parameters<EngineProxy['hold']>): Hold {
    const hold = proxy.hold(...rule);
    holds.push(hold);
    return hold;
  }

  /** Begins a rebuild in a process of its own, which can be killed when `there` resolves. */
  async function beginRebuild(datasetUrl: string): Promise<SpawnedCli> {
    const { redis } = await engines();
    const builder = new SpawnedCli('src/main.ts', {
      PORT: '0',
      ELASTICSEARCH_URL: proxy.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: suite.service.slug,
      DATASET_URL: datasetUrl,
      REBUILD_SECRET,
    });
    builders.push(builder);
    expect((await fetch(`${await builder.url()}${REBUILD}&force=true`)).status).to.equal(202);
    return builder;
  }

  /** @returns the process of the rebuild. */
  async function kill(builder: SpawnedCli, killed: (typeof KILLED)[number]): Promise<number> {
    const [worker = NaN, ...others] = workersOf(builder.pid);
    expect(others).to.deep.equal([]);
    if (killed !== 'worker') builder.signal('SIGKILL');
    if (killed !== 'server') process.kill(worker, 'SIGKILL');
    if (killed !== 'worker') await builder.exit();
    return worker;
  }

  /** Removes the lock of a killed process now: the replica that is killed while it downloads shows that it expires. */
  async function endLock(): Promise<void> {
    const redis = new Redis((await engines()).redis.url);
    const ended = await redis.del(`${suite.service.slug}:rebuild:lock`);
    redis.disconnect();
    expect(ended).to.equal(1);
  }

  /** The next rebuild, on another replica, goes through, and nothing of the killed one is left. */
  async function expectRecovery(builder: SpawnedCli, worker: number): Promise<void> {
    await waitFor(() => !isRunning(worker), 'the end of the worker', 10_000);
    await waitFor(
      async () => (await suite.service.get(`${REBUILD}&force=true`)).status === 202,
      'the lock to end',
      LOCK_TIMEOUT_MS,
    );
    await suite.service.idle();
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect((await suite.service.get('/health')).body.total_packages).to.equal(OLD.length);
    // What is served, and the generation before it.
    expect(await suite.service.indices()).to.have.length(2);
    expect(await temporaryFilesOf(worker)).to.deep.equal([]);
  }

  /** A server whose worker was killed goes on serving, and says why the rebuild failed. */
  async function expectReport(builder: SpawnedCli, worker: number): Promise<void> {
    const url = await builder.url();
    let failure: { reason: string } | null = null;
    await waitFor(async () => {
      const { body } = await request(`${url}${REBUILD}`);
      failure = body.last_failure as typeof failure;
      return failure !== null;
    }, 'the report');
    expect(failure).to.include({ reason: 'the process of the rebuild ended unexpectedly (SIGKILL)' });
    expect((await request(`${url}/health`)).status).to.equal(200);
    expect(builder.stdout).to.contain('"msg":"the rebuild failed; the previous snapshot stays in service"');
    await waitFor(
      async () => (await temporaryFilesOf(worker)).length === 0,
      'the server to remove temporary files',
    );
  }

  for (const killed of KILLED) {
    it(`while it downloads: the ${killed}`, async () => {
      const held = heldBack(() => toCsv(NEW));
      const origin = await datasetServer(held.listener);
      const builder = await beginRebuild(origin.url);
      const worker = await kill(builder, killed);
      if (killed === 'worker') {
        await builder.prints(/the rebuild failed/, 5000);
        await expectReport(builder, worker);
        await endLock();
      }
      held.release();
      await origin.close();
      await expectRecovery(builder, worker);
    });
  }

  it('while it checks: the replica', async () => {
    const long = await datasetFile(await longCsv());
    try {
      const builder = await beginRebuild(long.url);
      const url = await builder.url();
      await waitFor(
        async () =>
          ((await (await fetch(`${url}${REBUILD}`)).json()) as { phase: string }).phase === 'checking',
        'the check',
      );
      const worker = await kill(builder, 'replica');
      await endLock();
      await expectRecovery(builder, worker);
    } finally {
      await long.remove();
    }
  });

  const steps: [
    killed: readonly (typeof KILLED)[number][],
    what: string,
    when: 'before' | 'after',
    matches: (method: string, path: string) => boolean,
  ][] = [
    [
      ['replica', 'worker'],
      'before its index is there',
      'before',
      (method, path) => method === 'PUT' && path.includes('-packages-'),
    ],
    [
      ['replica', 'server'],
      'when its index is there',
      'after',
      (method, path) => method === 'PUT' && path.includes('-packages-'),
    ],
    [['replica'], 'before it loads', 'before', (_method, path) => path.includes('_bulk')],
    [['replica', 'worker'], 'while it loads', 'after', (_method, path) => path.includes('_bulk')],
    [['replica', 'server'], 'while it merges', 'after', (_method, path) => path.includes('_forcemerge')],
    [['replica', 'worker'], 'while it verifies', 'before', (_method, path) => path.includes('_count')],
    [['replica', 'worker'], 'before the flip', 'before', (_method, path) => path.startsWith('/_aliases')],
  ];
  for (const [kinds, what, when, matches] of steps) {
    for (const killed of kinds) {
      it(`${what}: the ${killed}; the old data is served, and the next rebuild goes through`, async () => {
        const hold = holdNext(when, matches);
        const builder = await beginRebuild(dataset.url);
        await hold.arrived;
        const worker = await kill(builder, killed);
        if (killed === 'worker') {
          await builder.prints(/the rebuild failed/, 5000);
          await expectReport(builder, worker);
          await waitFor(
            async () => (await suite.service.indices()).length <= 2,
            'the server to clean up',
            5000,
          );
        }
        expect((await suite.service.get('/health')).body.total_packages).to.equal(OLD.length);
        hold.release();
        if (killed !== 'server') await endLock();
        await expectRecovery(builder, worker);
      });
    }
  }

  for (const killed of KILLED) {
    it(`right after the flip: the ${killed}; the new data is served, and the next rebuild goes through`, async () => {
      const hold = holdNext('after', (_method, path) => path.startsWith('/_aliases'));
      const builder = await beginRebuild(dataset.url);
      await hold.arrived;
      const worker = await kill(builder, killed);
      hold.release();
      await waitFor(
        async () => (await suite.service.get('/health')).body.total_packages === NEW.length,
        'the new data',
        3000,
      );
      if (killed === 'worker') {
        await builder.prints(/the process of the rebuild ended after its snapshot was served/, 5000);
        const { body } = await request(`${await builder.url()}${REBUILD}`);
        expect(body).to.include({ code: 'rebuilding', last_failure: null });
      }
      if (killed !== 'server') await endLock();
      await expectRecovery(builder, worker);
    });
  }

  reading.itNoticesNothing();
});

describe('A rebuild that meets a fault', function () {
  this.timeout(90_000);
  const suite = useService(
    () => OLD,
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [OLD.length]);

  /** A rebuild in which the new index is changed while it is loaded. */
  async function rebuildDisturbed(settings: object): Promise<string | undefined> {
    const { elasticsearch, server, alias } = suite.service;
    const served = await suite.service.indices();
    await suite.dataset.write(toCsv(bundledPackages()));
    expect((await suite.service.get(REBUILD)).status).to.equal(202);
    let index: string | undefined;
    await waitFor(async () => {
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

  it('stops at a document that is refused, and leaves nothing behind', async () => {
    expect(await rebuildDisturbed({ 'index.final_pipeline': 'missing' })).to.match(
      /Elasticsearch refused a document: illegal_argument_exception: pipeline with id \[missing\]/,
    );
  });

  it('stops at the block of a full disk, and leaves nothing behind', async () => {
    expect(await rebuildDisturbed({ 'index.blocks.read_only_allow_delete': true })).to.match(
      /cluster_block_exception/,
    );
  });

  reading.itNoticesNothing();
});

describe('A rebuild under which an engine goes away', function () {
  this.timeout(120_000);
  const suite = useService(
    () => OLD,
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [OLD.length, bundledPackages().length]);

  /** Begins to load a snapshot that takes some seconds. */
  async function load(): Promise<void> {
    await suite.dataset.write(toCsv(bundledPackages()));
    expect((await suite.service.get(REBUILD)).status).to.equal(202);
    await suite.service.loading();
  }

  async function expectRebuilt(): Promise<void> {
    await suite.service.idle(90_000);
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect((await suite.service.get('/health')).body.total_packages).to.equal(bundledPackages().length);
    expect(await suite.service.indices()).to.have.length(2);
  }

  /** The only Elasticsearch answers nobody meanwhile; readers are told so, and get no wrong answer. */
  async function elasticsearchAway(away: () => Promise<void>): Promise<void> {
    const answers = async () => (await suite.service.get('/search?q=lib')).status === 200;
    const healthy = async () => (await suite.service.get('/health')).status === 200;
    reading.engineMayBeAway = true;
    await away();
    await waitFor(async () => (await answers()) && (await healthy()), 'Elasticsearch to be back', 30_000);
    reading.engineMayBeAway = false;
  }

  it('Elasticsearch stands still: the load goes on when it does', async () => {
    const { elasticsearch } = await engines();
    await load();
    await elasticsearchAway(async () => {
      await elasticsearch.pause();
      await pause(5000).finally(() => elasticsearch.resume());
    });
    await expectRebuilt();
  });

  it('Elasticsearch is killed and started again: the load goes on when it is back', async () => {
    const { elasticsearch } = await engines();
    await load();
    await elasticsearchAway(async () => {
      await elasticsearch.kill();
      await elasticsearch.restart();
    });
    await expectRebuilt();
  });

  it('Redis is killed and started again, without the lock: the rebuild stops before the flip', async () => {
    const { redis } = await engines();
    const served = await suite.service.indices();
    await load();
    await redis.kill();
    await redis.restart();
    await suite.service.idle(20_000);
    expect(suite.service.server.rebuilds.lastFailure?.reason).to.contain('the lock was lost');
    expect(await suite.service.indices()).to.deep.equal(served);
    await waitFor(async () => (await suite.service.get(REBUILD)).status === 202, 'rebuilds to be possible');
    await suite.service.idle();
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
  });

  reading.itNoticesNothing();
});
