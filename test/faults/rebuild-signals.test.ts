import { expect } from 'chai';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { toCsv } from '../support/datasets.js';
import { EngineProxy, isBulk, isCreation, isFlip, isMerge, type Matches } from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { isRunning, rebuildsOf } from '../support/rebuild-processes.js';
import { endLock, spawnReplica } from '../support/replicas.js';
import { REBUILD, request, SHARED_PACKAGES, useService } from '../support/service.js';
import { keptIndices } from '../support/served-index.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { waitFor } from '../support/wait-for.js';

const OLD = SHARED_PACKAGES.slice(0, 300);
const NEW = SHARED_PACKAGES.slice(0, 600);

const isVerification: Matches = (_method, path) => path.includes('_msearch');
const isComparison: Matches = (method, path) => method === 'PUT' && path.includes('-changes-2');
/** Also of the index of changes, which is copied at the end of the comparison. */
const isCopying: Matches = (method, path) => method === 'PUT' && path.includes('_settings');
const isPruning: Matches = (_method, path, body) =>
  path.startsWith('/_aliases') && body.includes('remove_index');

/** Where a rebuild is, by a request that it is about to send, or has sent. Without one, it waits for its dataset. */
type Point = [step: string, when?: 'before' | 'after', matches?: Matches];

const BEFORE_FLIP: readonly Point[] = [
  ['downloading'],
  ['creating, after checking', 'before', isCreation],
  ['creating, after the request', 'after', isCreation],
  ['loading', 'before', isBulk],
  ['merging', 'before', isMerge],
  ['verifying', 'before', isVerification],
  ['comparing', 'after', isComparison],
  ['replicating', 'before', isCopying],
  ['flipping', 'before', isFlip],
];
const AFTER_FLIP: readonly Point[] = [
  ['flipping, after the request', 'after', isFlip],
  ['pruning', 'before', isPruning],
];

/** A rebuild that has begun, in a process of its own. */
interface Begun {
  pid: number;
  /** Waits for its end. @returns whether it says that it has succeeded; undefined if it says nothing. */
  end(): Promise<boolean | undefined>;
}

describe('A rebuild, at every step,', function () {
  this.timeout(240_000);
  const suite = useService(() => OLD);
  let origin: DatasetServer;
  let proxy: EngineProxy;
  let replica: SpawnedCli;
  /** What the dataset server sends to the rebuilds that get signals; nothing while undefined. */
  let csv: string | undefined;
  let downloads = 0;

  before(async () => {
    origin = await datasetServer((_request, response) => {
      downloads++;
      if (csv !== undefined) response.end(csv);
    });
    proxy = await EngineProxy.start(engines().elasticsearch.url);
    replica = spawnReplica(suite, env());
    await replica.url();
  });
  after(async () => {
    await replica.stop();
    await Promise.all([proxy.close(), origin.close()]);
  });

  const env = () => ({ ELASTICSEARCH_URL: proxy.url, DATASET_URL: origin.url });

  const ways: readonly [name: string, begin: () => Promise<Begun>][] = [
    ['the server', beginByServer],
    ['the command', beginByCommand],
  ];

  async function beginByServer(): Promise<Begun> {
    const from = replica.stdout.length;
    const url = `${await replica.url()}${REBUILD}&force=true`;
    // A process has ended a moment before its server knows.
    await waitFor(async () => (await request(url)).status === 202, 'the rebuild to begin', 20_000);
    const [pid = NaN] = rebuildsOf(replica.pid);
    const end = async () => {
      const ended = /"msg":"(rebuilt|the rebuild failed|the rebuild process crashed after the flip)/;
      await waitFor(() => ended.test(replica.stdout.slice(from)), 'the outcome in the log', 40_000);
      await waitFor(() => !isRunning(pid), 'the process to end', 20_000);
      return !replica.stdout.slice(from).includes('the rebuild failed');
    };
    return { pid, end };
  }

  function beginByCommand(): Promise<Begun> {
    const command = new SpawnedCli('cli/rebuild', { ...suite.service.env, ...env() }, ['--force']);
    const end = async () => {
      const code = await command.exit();
      return code === 'SIGKILL' ? undefined : code === 0;
    };
    return Promise.resolve({ pid: command.pid ?? NaN, end });
  }

  /** Begins a rebuild and waits until it is at a point. @returns it, and what lets its request go. */
  async function rebuildUntil([step, when, matches]: Point, begin: () => Promise<Begun>) {
    csv = matches && toCsv(NEW);
    const before = downloads;
    const hold = when && matches && proxy.hold(when, matches);
    const begun = await begin();
    await hold?.arrived;
    if (hold === undefined) await waitFor(() => downloads > before, `${step} to begin`);
    return { begun, release: () => hold?.release() };
  }

  /** Lets another replica rebuild after the end of the lock. @returns what is served then. */
  async function rebuildElsewhere(step: string): Promise<(string | undefined)[]> {
    await endLock(suite.service);
    expect((await suite.service.rebuild('&force=true')).status, step).to.equal(202);
    expect(suite.service.server.rebuilds.lastFailure, step).to.equal(undefined);
    const now = await keptIndices(suite.service);
    expect(await suite.service.indices(), `${step}: nothing is left`).to.have.members(now);
    return now;
  }

  it('ends in ten seconds if Elasticsearch does not respond to the cleanup after a stop, and says so', async () => {
    csv = toCsv(NEW);
    const load = proxy.hold('before', isBulk);
    const command = new SpawnedCli('cli/rebuild', { ...suite.service.env, ...env() }, ['--force']);
    await load.arrived;
    const hanging = proxy.hang();
    const began = performance.now();
    expect(await command.stop(), command.stderr).to.equal(1);
    expect(performance.now() - began).to.be.within(8_000, 10_000);
    expect(command.stdout + command.stderr).to.contain('the cleanup after the stop takes too long');
    load.release();
    hanging.release();
    await rebuildElsewhere('loading');
  });

  for (const [name, begin] of ways) {
    it(`leaves nothing that the next one does not remove if it is killed, started by ${name}`, async () => {
      for (const point of [...BEFORE_FLIP, ...AFTER_FLIP]) {
        const [step] = point;
        const [before] = await keptIndices(suite.service);
        const { begun, release } = await rebuildUntil(point, begin);
        process.kill(begun.pid, 'SIGKILL');
        const succeeded = await begun.end();
        release();
        const hasFlipped = AFTER_FLIP.includes(point);
        expect(succeeded, step).to.be.oneOf([hasFlipped, undefined]);
        const [now] = await keptIndices(suite.service);
        expect(now === before, `${step}: the same is served`).to.equal(!hasFlipped);
        const [, previous] = await rebuildElsewhere(step);
        expect(previous, step).to.equal(now);
      }
    });

    it(`changes nothing that another one serves if it was suspended, started by ${name}`, async () => {
      for (const point of [...BEFORE_FLIP, ...AFTER_FLIP]) {
        const [step] = point;
        const { begun, release } = await rebuildUntil(point, begin);
        process.kill(begun.pid, 'SIGSTOP');
        const now = await rebuildElsewhere(step);
        process.kill(begun.pid, 'SIGCONT');
        release();
        csv = toCsv(NEW);
        expect(await begun.end(), step).to.equal(AFTER_FLIP.includes(point));
        expect(await keptIndices(suite.service), step).to.deep.equal(now);
        expect(await suite.service.indices(), `${step}: nothing is left`).to.have.members(now);
      }
    });
  }
});
