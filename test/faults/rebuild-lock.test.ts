import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect } from 'chai';
import { createLogger } from '../../src/log.js';
import { RedisLock } from '../../src/rebuild/lock.js';
import { bundledPackages, datasetFile, packagesNamed, toCsv, type DatasetFile } from '../support/datasets.js';
import { datasetServer, heldBack } from '../support/dataset-server.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { servedIndex } from '../support/served-index.js';
import { newSlug, REBUILD, REBUILD_SECRET, startService, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { workersOf } from '../support/worker-processes.js';

describe('The lock of a rebuild', function () {
  this.timeout(120_000);
  const suite = useService(
    () => bundledPackages().slice(0, 1000),
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [1000]);
  let redis: Redis;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    redis = new Redis((await engines()).redis.url);
    // Some of these tests stop Redis.
    redis.on('error', () => undefined);
  });

  after(() => {
    redis.disconnect();
  });

  /** Starts a second replica and its rebuild, on a dataset that is held back. */
  async function heldRebuild() {
    const held = heldBack(() => toCsv(packagesNamed(['gamma', 'delta', 'epsilon'])));
    const origin = await datasetServer(held.listener);
    const replica = await startService({ DATASET_URL: origin.url }, suite.service.slug);
    expect((await replica.get(REBUILD)).status).to.equal(202);
    const end = async () => {
      held.release();
      await replica.stop();
      await origin.close();
    };
    return { held, replica, end };
  }

  it('stops the rebuild before the flip if it is lost', async () => {
    const { held, replica, end } = await heldRebuild();
    try {
      const served = await servedIndex(suite.service);
      await redis.set(`${suite.service.slug}:rebuild:lock`, 'another', 'PX', 8000);
      await waitFor(() => replica.server.rebuilds.progress === undefined, 'the rebuild to stop', 5000);
      held.release();
      expect(replica.server.rebuilds.lastFailure?.reason).to.contain('the lock was lost');
      expect(await servedIndex(suite.service)).to.equal(served);
      expect(await suite.service.indices()).to.deep.equal([served]);
      expectProblem(await suite.service.get(REBUILD), 503, 'rebuilding');
    } finally {
      await redis.del(`${suite.service.slug}:rebuild:lock`);
      await end();
    }
  });

  it('is lost if Redis is down for longer than it lasts; the next rebuild succeeds', async () => {
    const { held, replica, end } = await heldRebuild();
    const engine = (await engines()).redis;
    try {
      const served = await servedIndex(suite.service);
      await engine.kill();
      try {
        await waitFor(() => replica.server.rebuilds.progress === undefined, 'the rebuild to stop', 15_000);
      } finally {
        await engine.restart();
      }
      held.release();
      expect(replica.server.rebuilds.lastFailure?.reason).to.contain('the lock was lost');
      expect(await servedIndex(suite.service)).to.equal(served);
      await waitFor(
        async () => (await suite.service.get(REBUILD)).status === 202,
        'rebuilds to be possible',
        15_000,
      );
      await suite.service.idle(10_000);
      expect(await servedIndex(suite.service)).not.to.equal(served);
    } finally {
      await end();
    }
  });

  it('is released when a rebuild ends', async () => {
    for (let i = 0; i < 2; i++) expect((await suite.service.rebuild()).status).to.equal(202);
    expect(await redis.exists(`${suite.service.slug}:rebuild:lock`)).to.equal(0);
  });

  it('is not reported lost after its release, even with a renewal in flight', async () => {
    const lockMs = 800;
    const lock = new RedisLock(redis, newSlug(), createLogger('silent', false), lockMs);
    const held = await lock.acquire();
    if (held === undefined) throw new Error('the lock is held');
    // Redis does not respond for a moment, in which the first renewal is sent.
    await redis.client('PAUSE', lockMs / 2, 'ALL');
    await pause(lockMs / 3);
    await held.release();
    await pause(lockMs + 200);
    expect(held.lost.aborted).to.equal(false);
    const next = await lock.acquire();
    expect(next, 'the lock again').not.to.be.undefined;
    await next?.release();
  });

  it('is released after an acquisition that timed out', async () => {
    const { slug } = suite.service;
    const lock = new RedisLock(redis, slug, createLogger('silent', false));
    const impatient = redis.duplicate({ commandTimeout: 300 });
    const late = new RedisLock(impatient, slug, createLogger('silent', false));
    await impatient.ping();
    await redis.client('PAUSE', 1000, 'ALL');
    expect(await late.acquire().catch((error: unknown) => (error as Error).name)).to.equal(
      'LockUnavailableError',
    );
    await waitFor(async () => !(await lock.isHeld()), 'the lock to be free', 3000);
    await pause(1000);
    expect(await lock.isHeld()).to.equal(false);
    impatient.disconnect();
  });

  it('is unavailable while Redis is down: /rebuild returns 503', async () => {
    const engine = (await engines()).redis;
    await engine.kill();
    try {
      const answer = await suite.service.get(REBUILD);
      expectProblem(answer, 503, 'search_unavailable');
      expect(answer.body.detail).to.contain('Redis');
    } finally {
      await engine.restart();
    }
    await waitFor(
      async () => (await suite.service.get(REBUILD)).status === 202,
      'rebuilds to be possible',
      5000,
    );
    await suite.service.idle(10_000);
  });

  reading.itNoticesNothing();
});

describe('A replica that is suspended until its lock expires', function () {
  this.timeout(180_000);
  let dataset: DatasetFile;
  const suite = useService(
    () => bundledPackages().slice(0, 2000),
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [2000]);

  before(async () => {
    dataset = await datasetFile(toCsv(bundledPackages()));
  });
  after(() => dataset.remove());

  it('does not replace the generation of a replica that has rebuilt meanwhile, and cleans up', async () => {
    const { elasticsearch, redis } = await engines();
    const sleeper = new SpawnedCli('src/main.ts', {
      PORT: '0',
      ELASTICSEARCH_URL: elasticsearch.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: suite.service.slug,
      DATASET_URL: dataset.url,
      REBUILD_SECRET,
    });
    try {
      const url = await sleeper.url();
      const rebuild = `${url}${REBUILD}`;
      expect((await fetch(rebuild)).status).to.equal(202);
      await waitFor(
        async () => ((await (await fetch(rebuild)).json()) as { phase: string }).phase === 'loading',
        'the load to start',
      );
      const [worker = NaN] = workersOf(sleeper.pid);
      process.kill(worker, 'SIGSTOP');
      sleeper.signal('SIGSTOP');
      expect(await suite.service.indices()).to.have.length(2);

      await waitFor(async () => (await suite.service.get(REBUILD)).status === 202, 'the lock to end', 20_000);
      await suite.service.idle();
      const flipped = await servedIndex(suite.service);

      const left = await suite.service.indices();
      const seen = new Set(left);
      process.kill(worker, 'SIGCONT');
      sleeper.signal('SIGCONT');
      await waitFor(async () => {
        for (const index of await suite.service.indices()) seen.add(index);
        return sleeper.stdout.includes('the rebuild failed');
      }, 'the sleeper to fail');
      expect(await servedIndex(suite.service)).to.equal(flipped);
      // The current and the previous generation. The index of the sleeper was removed meanwhile, and its
      // load, which resumes, does not create another one.
      expect(left).to.have.length(2);
      expect([...seen]).to.deep.equal(left);
      expect(await suite.service.indices()).to.deep.equal(left);
      expect((await suite.service.get('/health')).body.total_packages).to.equal(2000);
      const { body } = await suite.service.get(REBUILD);
      expect(body.last_failure, 'cleared by the later success').to.equal(null);
      await suite.service.idle();
    } finally {
      sleeper.signal('SIGCONT');
      await sleeper.stop();
    }
  });

  reading.itNoticesNothing();
});
