import { expect } from 'chai';
import type { Failure } from '../../src/rebuild/process/outcome.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { toCsv } from '../support/datasets.js';
import { isBulk, isCreation, isFlip, isMerge, type Matches } from '../support/engine-proxy.js';
import { useProxiedService } from '../support/proxied-service.js';
import { endLock, spawnReplica } from '../support/replicas.js';
import {
  logLines,
  REBUILD,
  request,
  SHARED_PACKAGES,
  startService,
  type Service,
} from '../support/service.js';
import type { SpawnedCli } from '../support/spawn-cli.js';
import { waitFor } from '../support/wait-for.js';
import { isRunning, rebuildsOf } from '../support/rebuild-processes.js';

const OLD = SHARED_PACKAGES.slice(0, 300);
const NEW = SHARED_PACKAGES.slice(0, 600);

const isCreationOfChanges: Matches = (method, path) => method === 'PUT' && path.includes('-changes-2');
const isVerification: Matches = (_method, path) => path.includes('_count');

/** Where a rebuild is killed: before or after a request, or while it downloads. */
type Point = [what: string, when?: 'before' | 'after', matches?: Matches];

const DOWNLOADING: Point = ['during the download'];
const CREATING: Point = ['before its index is created', 'before', isCreation];
const LOADING: Point = ['during the load', 'after', isBulk];
const CREATED: Point = ['after its index is created', 'after', isCreation];
const MERGING: Point = ['during the merge', 'after', isMerge];
const VERIFYING: Point = ['during verification', 'before', isVerification];
const FLIPPING: Point = ['right before the flip', 'before', isFlip];
/** The only one with the new snapshot in service, and therefore the last of every sequence. */
const FLIPPED: Point = ['right after the flip', 'after', isFlip];

/** A failure as `/rebuild` reports it. */
function shown(failure: Failure | undefined): object | null {
  return failure === undefined ? null : { at: failure.at, reason: failure.reason };
}

describe('A rebuild', function () {
  this.timeout(120_000);
  const suite = useProxiedService(() => OLD, UNCACHED);
  const reading = useBackgroundReader(suite, [OLD.length, NEW.length]);
  let origin: DatasetServer;
  /** What the dataset server sends; nothing while undefined. */
  let csv: string | undefined;
  const cleanups: (() => unknown)[] = [];

  before(async () => {
    origin = await datasetServer((_request, response) => {
      if (csv !== undefined) response.end(csv);
    });
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });
  after(() => origin.close());

  const env = () => ({ ELASTICSEARCH_URL: suite.proxy.url, DATASET_URL: origin.url });

  /** Starts a replica in a child process, and a rebuild. */
  async function beginElsewhere(): Promise<SpawnedCli> {
    const replica = spawnReplica(suite, env());
    cleanups.push(() => replica.stop());
    expect((await request(`${await replica.url()}${REBUILD}&force=true`)).status).to.equal(202);
    return replica;
  }

  /** Starts a rebuild of a replica in this process. @returns its worker. */
  async function beginOn(replica: Service): Promise<number> {
    const before = rebuildsOf();
    const { status, body } = await replica.get(`${REBUILD}&force=true`);
    expect(status).to.equal(202);
    expect(body.last_failure).to.deep.equal(shown(replica.server.rebuilds.lastFailure));
    return rebuildsOf().find((pid) => !before.includes(pid)) ?? NaN;
  }

  /** Begins a rebuild and waits until it is at a point. @returns what `begin` does, and the release of its request. */
  async function rebuildUntil<T>([what, when, matches]: Point, begin: () => Promise<T>) {
    csv = matches && toCsv(NEW);
    const hold = when && matches && suite.proxy.hold(when, matches);
    const release = () => hold?.release();
    cleanups.push(release);
    const begun = await begin().catch((cause: unknown) => {
      throw new Error(`the rebuild to be killed ${what} did not start`, { cause });
    });
    await hold?.arrived;
    return { begun, release };
  }

  /** Kills a replica, with or without its worker. @returns the process id of the worker. */
  async function kill(replica: SpawnedCli, withWorker: boolean): Promise<number> {
    const [worker = NaN, ...others] = rebuildsOf(replica.pid);
    expect(others).to.deep.equal([]);
    replica.signal('SIGKILL');
    if (withWorker) {
      process.kill(worker, 'SIGKILL');
      await replica.exit();
    }
    return worker;
  }

  const total = async () => (await suite.service.get('/health')).body.total_packages as number;

  function expectServed(point: Point): Promise<void> {
    const { length } = point === FLIPPED ? NEW : OLD;
    return waitFor(async () => (await total()) === length, `${length} packages, killed ${point[0]}`, 5000);
  }

  /** Asserts that the next rebuild succeeds and leaves nothing of the killed ones. */
  async function expectRecovery(): Promise<void> {
    expect((await suite.service.rebuild('&force=true')).status, 'the lock is free').to.equal(202);
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect(await total()).to.equal(OLD.length);
    // The current and the previous snapshot.
    expect(await suite.service.indices()).to.have.length(2);
  }

  it('that is killed with its server leaves a complete snapshot in service and does not block the next one', async () => {
    // Right after its creation, as much is left as during the load; during the merge and the verification, as much as
    // right before the flip.
    for (const point of [DOWNLOADING, LOADING, FLIPPING, FLIPPED]) {
      const { begun, release } = await rebuildUntil(point, beginElsewhere);
      await kill(begun, true);
      release();
      await expectServed(point);
      await endLock(suite.service);
    }
    await expectRecovery();
  });

  it('whose process is killed is reported and cleaned up by its server, unless it has flipped', async () => {
    const replica = await startService(env(), suite.service.slug);
    cleanups.push(() => replica.stop());
    const { rebuilds } = replica.server;
    const sending: Point = ['before a request of the load', 'before', isBulk];
    const failing = [DOWNLOADING, CREATING, sending, VERIFYING, FLIPPING];
    for (const point of [...failing, FLIPPED]) {
      const [what] = point;
      const before = await suite.service.indices();
      const { begun: worker, release } = await rebuildUntil(point, () => beginOn(replica));
      process.kill(worker, 'SIGKILL');
      await replica.idle();
      release();
      if (point !== FLIPPED) {
        const { reason } = rebuilds.lastFailure ?? {};
        expect(reason, what).to.equal('the rebuild process ended unexpectedly (SIGKILL)');
        expect(await suite.service.indices(), what).to.deep.equal(before);
        // Elasticsearch may execute a flip that it has received already.
        const served =
          point === FLIPPING ? 'it is unknown which snapshot is served' : 'what is served has not changed';
        const logged = logLines.findLast(({ msg }) => String(msg).startsWith('the rebuild failed;'));
        expect(logged?.['msg'], what).to.equal(`the rebuild failed; ${served}`);
      } else {
        const msg = 'the rebuild process crashed after the flip; its snapshot is served';
        expect(logLines.map((line) => line['msg'])).to.include(msg);
      }
      const { body } = await suite.service.get(REBUILD);
      expect(body.code, what).to.equal('rebuilding');
      expect(body.last_failure, what).to.deep.equal(shown(rebuilds.lastFailure));
      expect((await replica.get('/health')).status, what).to.equal(200);
      await expectServed(point);
      await endLock(suite.service);
    }
    expect(rebuilds.counts).to.include({ rebuilt: 1, failed: failing.length });
    expect(rebuilds.lastFailure).to.equal(undefined);
    await expectRecovery();
  });

  it('whose server is killed alone stops, cleans up and releases the lock, with a complete snapshot in service', async () => {
    for (const point of [DOWNLOADING, CREATED, MERGING, FLIPPED]) {
      const { begun, release } = await rebuildUntil(point, beginElsewhere);
      const worker = await kill(begun, false);
      release();
      await expectServed(point);
      await waitFor(() => !isRunning(worker), `the worker to exit, its server killed ${point[0]}`);
    }
    await expectRecovery();
  });

  it('that loses the responses to its requests succeeds, and leaves nothing behind', async () => {
    const lost = [isCreation, isCreationOfChanges, isBulk, isFlip].map((one) =>
      suite.proxy.loseResponse(one),
    );
    const before = suite.service.server.snapshots.current?.id;
    const snapshot = await suite.publish(OLD);
    await Promise.all(lost);
    expect(await suite.service.indices()).to.have.length(2);
    const { from, to } = (await suite.service.get('/changes')).body;
    expect({ from, to }, 'compared with the previous one').to.deep.equal({ from: before, to: snapshot });
  });

  for (const [what, settings, reason] of [
    ['a write block', { 'index.blocks.write': true }, /rejected a document: cluster_block_exception/],
    ['a rejected document', { 'index.final_pipeline': 'missing' }, /rejected a document: illegal_argument/],
    ['the block of a full disk', { 'index.blocks.read_only_allow_delete': true }, /cluster_block_exception/],
  ] as const) {
    it(`stops at ${what}, and cleans up`, async () => {
      const { elasticsearch, server } = suite.service;
      const served = await suite.service.indices();
      const load = suite.proxy.hold('before', isBulk);
      const rebuilt = suite.service.rebuild('&force=true');
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
