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

/** Longer than a lock outlives its process. */
const LOCK_TIMEOUT_MS = 15_000;

const OLD = bundledPackages().slice(0, 3000);
const NEW = bundledPackages().slice(0, 20_000);

/**
 * Enough rows to take seconds to check. Generated in pieces, because the service under test runs in this
 * process, too: its searches time out if the event loop is blocked for 1.5 s.
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

/** What is killed: a replica with its worker, like a failing machine; only the worker; or only the server. */
const KILLED = ['replica', 'worker', 'server'] as const;

describe('A killed rebuild', function () {
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

  /** Starts a rebuild in a child process. */
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

  /** Kills processes of a rebuild. @returns the process id of the worker. */
  async function kill(builder: SpawnedCli, killed: (typeof KILLED)[number]): Promise<number> {
    const [worker = NaN, ...others] = workersOf(builder.pid);
    expect(others).to.deep.equal([]);
    if (killed !== 'worker') builder.signal('SIGKILL');
    if (killed !== 'server') process.kill(worker, 'SIGKILL');
    if (killed !== 'worker') await builder.exit();
    return worker;
  }

  /** Deletes the lock of a killed process. The kill of a replica during the download covers its expiry. */
  async function endLock(): Promise<void> {
    const redis = new Redis((await engines()).redis.url);
    const ended = await redis.del(`${suite.service.slug}:rebuild:lock`);
    redis.disconnect();
    expect(ended).to.equal(1);
  }

  /** Asserts that the next rebuild, on another replica, succeeds and leaves nothing of the killed one. */
  async function expectRecovery(builder: SpawnedCli, worker: number): Promise<void> {
    await waitFor(() => !isRunning(worker), 'the worker to exit', 10_000);
    await waitFor(
      async () => (await suite.service.get(`${REBUILD}&force=true`)).status === 202,
      'the lock to expire',
      LOCK_TIMEOUT_MS,
    );
    await suite.service.idle();
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect((await suite.service.get('/health')).body.total_packages).to.equal(OLD.length);
    // The current and the previous generation.
    expect(await suite.service.indices()).to.have.length(2);
    expect(await temporaryFilesOf(worker)).to.deep.equal([]);
  }

  /** Asserts that a server whose worker was killed keeps serving, and reports why the rebuild failed. */
  async function expectReport(builder: SpawnedCli, worker: number): Promise<void> {
    const url = await builder.url();
    let failure: { reason: string } | null = null;
    await waitFor(async () => {
      const { body } = await request(`${url}${REBUILD}`);
      failure = body.last_failure as typeof failure;
      return failure !== null;
    }, 'the report');
    expect(failure).to.include({ reason: 'the rebuild process ended unexpectedly (SIGKILL)' });
    expect((await request(`${url}/health`)).status).to.equal(200);
    expect(builder.stdout).to.contain('"msg":"the rebuild failed; the current snapshot stays in service"');
    await waitFor(
      async () => (await temporaryFilesOf(worker)).length === 0,
      'the server to remove temporary files',
    );
  }

  for (const killed of KILLED) {
    it(`does not block the next one (${killed}, during the download)`, async () => {
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

  it('does not block the next one (replica, during the check)', async () => {
    const long = await datasetFile(await longCsv());
    try {
      const builder = await beginRebuild(long.url);
      const url = await builder.url();
      await waitFor(
        async () =>
          ((await (await fetch(`${url}${REBUILD}`)).json()) as { phase: string }).phase === 'checking',
        'the check to start',
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
      'before its index is created',
      'before',
      (method, path) => method === 'PUT' && path.includes('-packages-'),
    ],
    [
      ['replica', 'server'],
      'after its index is created',
      'after',
      (method, path) => method === 'PUT' && path.includes('-packages-'),
    ],
    [['replica'], 'before the load', 'before', (_method, path) => path.includes('_bulk')],
    [['replica', 'worker'], 'during the load', 'after', (_method, path) => path.includes('_bulk')],
    [['replica', 'server'], 'during the merge', 'after', (_method, path) => path.includes('_forcemerge')],
    [['replica', 'worker'], 'during verification', 'before', (_method, path) => path.includes('_count')],
    [['replica', 'worker'], 'before the flip', 'before', (_method, path) => path.startsWith('/_aliases')],
  ];
  for (const [kinds, what, when, matches] of steps) {
    for (const killed of kinds) {
      it(`keeps the old data in service, and does not block the next one (${killed}, ${what})`, async () => {
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
    it(`serves the new data, and does not block the next one (${killed}, right after the flip)`, async () => {
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
        await builder.prints(/the rebuild process crashed after the flip; its snapshot is served/, 5000);
        const { body } = await request(`${await builder.url()}${REBUILD}`);
        expect(body).to.include({ code: 'rebuilding', last_failure: null });
      }
      if (killed !== 'server') await endLock();
      await expectRecovery(builder, worker);
    });
  }

  reading.itNoticesNothing();
});

describe('A rebuild that loses the response to a request', function () {
  this.timeout(90_000);
  let proxy: EngineProxy;
  before(async () => {
    proxy = await EngineProxy.start((await engines()).elasticsearch.url);
  });
  const suite = useService(
    () => OLD,
    () => ({ ELASTICSEARCH_URL: proxy.url }),
  );
  after(() => proxy.close());

  const requests: [what: string, matches: (method: string, path: string) => boolean][] = [
    ['that creates its index', (method, path) => method === 'PUT' && /-packages-2[^/]*$/.test(path)],
    [
      'that creates the index of its changes',
      (method, path) => method === 'PUT' && path.includes('-changes-2'),
    ],
    ['of its load', (_method, path) => path.includes('_bulk')],
    ['that flips', (_method, path) => path.startsWith('/_aliases')],
  ];
  for (const [what, matches] of requests) {
    it(`succeeds, and leaves nothing behind (${what})`, async () => {
      let isLost = false;
      proxy.loseResponse((method, path) => {
        const isMatch = matches(method, path);
        isLost ||= isMatch;
        return isMatch;
      });
      expect((await suite.service.rebuild()).status).to.equal(202);
      expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
      expect(isLost).to.equal(true);
      expect(await suite.service.indices()).to.have.length(2);
      const { from, to } = (await suite.service.get('/changes')).body;
      expect(from, 'compared with the previous one').not.to.equal(to);
    });
  }
});

describe('A rebuild whose index rejects writes', function () {
  this.timeout(90_000);
  const suite = useService(
    () => OLD,
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [OLD.length]);

  /** Rebuilds, and changes settings of the new index during the load. @returns the reason of the failure. */
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

  it('stops at a write block, and cleans up', async () => {
    expect(await rebuildDisturbed({ 'index.blocks.write': true })).to.match(
      /Elasticsearch rejected a document: cluster_block_exception/,
    );
  });

  it('stops at a rejected document, and cleans up', async () => {
    expect(await rebuildDisturbed({ 'index.final_pipeline': 'missing' })).to.match(
      /Elasticsearch rejected a document: illegal_argument_exception: pipeline with id \[missing\]/,
    );
  });

  it('stops at the block of a full disk, and cleans up', async () => {
    expect(await rebuildDisturbed({ 'index.blocks.read_only_allow_delete': true })).to.match(
      /cluster_block_exception/,
    );
  });

  reading.itNoticesNothing();
});

describe('A rebuild during an outage of an engine', function () {
  this.timeout(120_000);
  const suite = useService(
    () => OLD,
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [OLD.length, bundledPackages().length]);

  /** Starts to load a snapshot that takes some seconds. */
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

  /** Takes down the only Elasticsearch. Readers may get 503 meanwhile, but no wrong response. */
  async function elasticsearchAway(away: () => Promise<void>): Promise<void> {
    const answers = async () => (await suite.service.get('/search?q=lib')).status === 200;
    const healthy = async () => (await suite.service.get('/health')).status === 200;
    reading.engineMayBeAway = true;
    await away();
    await waitFor(async () => (await answers()) && (await healthy()), 'Elasticsearch to be back', 30_000);
    reading.engineMayBeAway = false;
  }

  it('resumes its load after Elasticsearch hung', async () => {
    const { elasticsearch } = await engines();
    await load();
    await elasticsearchAway(async () => {
      await elasticsearch.pause();
      await pause(5000).finally(() => elasticsearch.resume());
    });
    await expectRebuilt();
  });

  it('resumes its load after Elasticsearch was killed and restarted', async () => {
    const { elasticsearch } = await engines();
    await load();
    await elasticsearchAway(async () => {
      await elasticsearch.kill();
      await elasticsearch.restart();
    });
    await expectRebuilt();
  });

  it('stops before the flip after Redis was killed and restarted without the lock', async () => {
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
