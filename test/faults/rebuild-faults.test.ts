import { expect } from 'chai';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { datasetServer } from '../support/dataset-server.js';
import { datasetFile, packagesNamed, toCsv, type DatasetFile } from '../support/datasets.js';
import { isBulk, isCreation, isFlip, isMerge, type Hold, type Matches } from '../support/engine-proxy.js';
import { useProxiedService } from '../support/proxied-service.js';
import { endLock, spawnReplica } from '../support/replicas.js';
import { REBUILD, request, SHARED_PACKAGES, startService, type Service } from '../support/service.js';
import type { SpawnedCli } from '../support/spawn-cli.js';
import { waitFor } from '../support/wait-for.js';
import { isRunning, temporaryFilesOf, workersOf } from '../support/worker-processes.js';

const OLD = SHARED_PACKAGES.slice(0, 300);
const NEW = SHARED_PACKAGES.slice(0, 600);

const isVerification: Matches = (_method, path) => path.includes('_count');

/** Enough rows to take a while to check. */
const CHECKED_ROWS = 500_000;

describe('A killed rebuild', function () {
  this.timeout(120_000);
  const suite = useProxiedService(() => OLD, UNCACHED);
  const reading = useBackgroundReader(suite, [OLD.length, NEW.length]);
  let dataset: DatasetFile;
  const holds: Hold[] = [];
  const cleanups: (() => Promise<unknown>)[] = [];

  before(async () => {
    dataset = await datasetFile(toCsv(NEW));
  });
  afterEach(async () => {
    for (const hold of holds.splice(0)) hold.release();
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });
  after(() => dataset.remove());

  function hold(...rule: Parameters<typeof suite.proxy.hold>): Hold {
    const held = suite.proxy.hold(...rule);
    holds.push(held);
    return held;
  }

  /** @returns the address of a dataset that is never sent. */
  async function stalledOrigin(): Promise<string> {
    const origin = await datasetServer(() => undefined);
    cleanups.push(() => origin.close());
    return origin.url;
  }

  /** Starts a replica in a child process, and a rebuild. */
  async function beginElsewhere(datasetUrl: string): Promise<SpawnedCli> {
    const replica = spawnReplica(suite, { ELASTICSEARCH_URL: suite.proxy.url, DATASET_URL: datasetUrl });
    cleanups.push(() => replica.stop());
    expect((await request(`${await replica.url()}${REBUILD}&force=true`)).status).to.equal(202);
    return replica;
  }

  /** Starts a replica in this process, and a rebuild. */
  async function beginHere(datasetUrl: string): Promise<[Service, worker: number]> {
    const env = { ELASTICSEARCH_URL: suite.proxy.url, DATASET_URL: datasetUrl };
    const replica = await startService(env, suite.service.slug);
    cleanups.push(() => replica.stop());
    const before = workersOf();
    expect((await replica.get(`${REBUILD}&force=true`)).status).to.equal(202);
    return [replica, workersOf().find((pid) => !before.includes(pid)) ?? NaN];
  }

  /** Kills a replica, with or without its worker. @returns the process id of the worker. */
  async function kill(replica: SpawnedCli, withWorker: boolean): Promise<number> {
    const [worker = NaN, ...others] = workersOf(replica.pid);
    expect(others).to.deep.equal([]);
    replica.signal('SIGKILL');
    if (withWorker) {
      process.kill(worker, 'SIGKILL');
      await replica.exit();
    }
    return worker;
  }

  const total = async () => (await suite.service.get('/health')).body.total_packages as number;
  const expectTotal = (packages: readonly unknown[]) =>
    waitFor(async () => (await total()) === packages.length, `${packages.length} packages`, 5000);

  /** Asserts that the next rebuild succeeds and leaves nothing of the killed one. */
  async function expectRecovery(worker: number): Promise<void> {
    await waitFor(() => !isRunning(worker), 'the worker to exit');
    expect((await suite.service.rebuild('&force=true')).status, 'the lock is free').to.equal(202);
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect(await total()).to.equal(OLD.length);
    // The current and the previous generation.
    expect(await suite.service.indices()).to.have.length(2);
    expect(await temporaryFilesOf(worker)).to.deep.equal([]);
  }

  describe('whose server is killed, too,', () => {
    it('does not block the next one (during the check)', async () => {
      const rows = Array.from({ length: CHECKED_ROWS }, (_, i) => `name-${i},https://r.example/${i}\n`);
      const long = await datasetFile(`name,url\n${rows.join('')}`);
      cleanups.push(() => long.remove());
      const replica = await beginElsewhere(long.url);
      const url = (await replica.url()) + REBUILD;
      await waitFor(async () => (await request(url)).body.phase === 'checking', 'the check to start');
      const worker = await kill(replica, true);
      expect(await temporaryFilesOf(worker), 'left by the killed one').to.have.length(1);
      await endLock(suite.service);
      await expectRecovery(worker);
    });

    it('does not block the next one (during the download)', async () => {
      const replica = await beginElsewhere(await stalledOrigin());
      const worker = await kill(replica, true);
      await endLock(suite.service);
      await expectRecovery(worker);
    });

    for (const [when, what, matches, served] of [
      ['before', 'before its index is created', isCreation, OLD],
      ['after', 'after its index is created', isCreation, OLD],
      ['after', 'during the load', isBulk, OLD],
      ['after', 'during the merge', isMerge, OLD],
      ['before', 'during verification', isVerification, OLD],
      ['before', 'right before the flip', isFlip, OLD],
      ['after', 'right after the flip', isFlip, NEW],
    ] as const) {
      it(`leaves a complete snapshot in service, and does not block the next one (${what})`, async () => {
        const held = hold(when, matches);
        const replica = await beginElsewhere(dataset.url);
        await held.arrived;
        const worker = await kill(replica, true);
        held.release();
        await expectTotal(served);
        await endLock(suite.service);
        await expectRecovery(worker);
      });
    }
  });

  describe('whose server keeps running', () => {
    for (const [what, matches] of [
      ['during the download', undefined],
      ['before its index is created', isCreation],
      ['during the load', isBulk],
      ['during verification', isVerification],
      ['right before the flip', isFlip],
    ] as const) {
      it(`is reported and cleaned up by the server (${what})`, async () => {
        const before = await suite.service.indices();
        const held = matches && hold('before', matches);
        const [replica, worker] = await beginHere(held === undefined ? await stalledOrigin() : dataset.url);
        await held?.arrived;
        process.kill(worker, 'SIGKILL');
        await replica.idle();
        held?.release();
        const { reason } = replica.server.rebuilds.lastFailure ?? {};
        expect(reason).to.equal('the rebuild process ended unexpectedly (SIGKILL)');
        const { body } = await suite.service.get(REBUILD);
        expect(body).to.deep.include({ last_failure: replica.server.rebuilds.lastFailure });
        expect((await replica.get('/health')).status).to.equal(200);
        expect(await temporaryFilesOf(worker)).to.deep.equal([]);
        expect(await suite.service.indices()).to.deep.equal(before);
        await expectTotal(OLD);
        await endLock(suite.service);
        await expectRecovery(worker);
      });
    }

    it('serves the new data and counts as a success (right after the flip)', async () => {
      const held = hold('after', isFlip);
      const [replica, worker] = await beginHere(dataset.url);
      await held.arrived;
      process.kill(worker, 'SIGKILL');
      await replica.idle();
      expect(replica.server.rebuilds.counts).to.include({ rebuilt: 1, failed: 0 });
      await expectTotal(NEW);
      const { body } = await suite.service.get(REBUILD);
      expect(body).to.include({ code: 'rebuilding', last_failure: null });
      await endLock(suite.service);
      await expectRecovery(worker);
    });
  });

  describe('whose server is killed alone', () => {
    it('stops, cleans up and releases the lock (during the download)', async () => {
      const worker = await kill(await beginElsewhere(await stalledOrigin()), false);
      await expectRecovery(worker);
    });

    for (const [what, matches, served] of [
      ['after its index is created', isCreation, OLD],
      ['during the merge', isMerge, OLD],
      ['right after the flip', isFlip, NEW],
    ] as const) {
      it(`leaves a complete snapshot in service, and releases the lock (${what})`, async () => {
        const held = hold('after', matches);
        const replica = await beginElsewhere(dataset.url);
        await held.arrived;
        const worker = await kill(replica, false);
        held.release();
        await expectTotal(served);
        await expectRecovery(worker);
      });
    }
  });

  reading.itNoticesNothing();
});

describe('A rebuild that loses the response to a request', function () {
  this.timeout(120_000);
  const suite = useProxiedService(() => OLD);

  for (const [what, matches] of [
    ['that creates its index', isCreation],
    [
      'that creates the index of its changes',
      (method, path) => method === 'PUT' && path.includes('-changes-2'),
    ],
    ['of its load', isBulk],
    ['that flips', isFlip],
  ] as [string, Matches][]) {
    it(`succeeds, and leaves nothing behind (${what})`, async () => {
      const lost = suite.proxy.loseResponse(matches);
      const before = suite.service.server.generations.current?.snapshot;
      const snapshot = await suite.publish(OLD);
      await lost;
      expect(await suite.service.indices()).to.have.length(2);
      const { from, to } = (await suite.service.get('/changes')).body;
      expect({ from, to }, 'compared with the previous one').to.deep.equal({ from: before, to: snapshot });
    });
  }
});

describe('A rebuild whose index rejects writes', function () {
  this.timeout(120_000);
  const suite = useProxiedService(
    () => packagesNamed(['lib-a', 'lib-b', 'lib-c', 'lib-d', 'lib-e']),
    UNCACHED,
  );
  const reading = useBackgroundReader(suite, [5]);

  for (const [what, settings, reason] of [
    ['a write block', { 'index.blocks.write': true }, /rejected a document: cluster_block_exception/],
    ['a rejected document', { 'index.final_pipeline': 'missing' }, /pipeline with id \[missing\]/],
    ['the block of a full disk', { 'index.blocks.read_only_allow_delete': true }, /cluster_block_exception/],
  ] as const) {
    it(`stops at ${what}, and cleans up`, async () => {
      const { elasticsearch, server } = suite.service;
      const served = await suite.service.indices();
      const load = suite.proxy.hold('before', isBulk);
      const rebuilt = suite.service.rebuild();
      await load.arrived;
      const index = (await suite.service.indices()).filter((name) => !served.includes(name));
      expect(index).to.have.length(1);
      await elasticsearch.indices.putSettings({ index, settings });
      load.release();
      await rebuilt;
      expect(server.rebuilds.lastFailure?.reason).to.match(reason);
      expect(await suite.service.indices()).to.deep.equal(served);
    });
  }

  reading.itNoticesNothing();
});
