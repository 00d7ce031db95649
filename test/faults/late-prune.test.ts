import { rejects } from 'node:assert/strict';
import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { flip } from '../../src/rebuild/steps/flip.js';
import { createIndex } from '../../src/rebuild/steps/create.js';
import { discard, prune } from '../../src/rebuild/steps/prune.js';
import { newIndexName } from '../../src/snapshot/index-names.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { bundledPackages, packagesNamed } from '../support/datasets.js';
import { isBulk, isFlip } from '../support/engine-proxy.js';
import { useProxiedService } from '../support/proxied-service.js';
import { endLock, spawnReplica } from '../support/replicas.js';
import { REBUILD, request } from '../support/service.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { keptIndices } from '../support/served-index.js';
import { STEP } from '../support/step.js';
import { waitFor } from '../support/wait-for.js';
import { rebuildsOf } from '../support/rebuild-processes.js';

const PACKAGES = bundledPackages().slice(0, 400);

describe('A process that is suspended until its lock expires', function () {
  this.timeout(120_000);
  const suite = useProxiedService(() => PACKAGES, UNCACHED);
  const reading = useBackgroundReader(suite, [PACKAGES.length]);

  /** Sends a signal to a process and its worker. */
  function signal(program: SpawnedCli, name: NodeJS.Signals): void {
    for (const worker of rebuildsOf(program.pid)) process.kill(worker, name);
    program.signal(name);
  }

  let sleeper: SpawnedCli;
  afterEach(async () => {
    signal(sleeper, 'SIGKILL');
    await sleeper.exit();
  });

  /** Starts a command on the suite's registry that reaches Elasticsearch through the proxy. */
  function start(script: string): void {
    const { service, dataset, proxy } = suite;
    const env = { ...service.env, DATASET_URL: dataset.url, ELASTICSEARCH_URL: proxy.url };
    sleeper = new SpawnedCli(script, env);
  }

  /**
   * Calls `begin`, suspends the sleeper at a request, lets another replica rebuild after the end of the lock, and
   * resumes the sleeper. @returns what is served before and after that rebuild.
   */
  async function overtake(begin: () => unknown, ...rule: Parameters<typeof suite.proxy.hold>) {
    const { service, proxy } = suite;
    const hold = proxy.hold(...rule);
    await begin();
    await hold.arrived;
    signal(sleeper, 'SIGSTOP');
    const before = await keptIndices(service);
    await endLock(service);
    expect((await service.rebuild()).status).to.equal(202);
    const afterwards = await keptIndices(service);
    expect(await service.indices()).to.have.members(afterwards);
    signal(sleeper, 'SIGCONT');
    hold.release();
    return { before, afterwards };
  }

  /** Asserts that the sleeper has changed nothing after it was resumed. */
  async function expectUnchanged(afterwards: (string | undefined)[]): Promise<void> {
    expect(await keptIndices(suite.service)).to.deep.equal(afterwards);
    expect(await suite.service.indices()).to.have.members(afterwards);
  }

  it('does not delete a newer snapshot if it resumes between flip and prune', async () => {
    const { before, afterwards } = await overtake(() => start('cli/rebuild'), 'after', isFlip);
    expect(afterwards[1], 'the previous snapshot').to.equal(before[0]);
    expect(await sleeper.exit(), sleeper.stderr).to.equal(0);
    await expectUnchanged(afterwards);
  });

  it('does not replace a newer snapshot if it resumes before a rollback', async () => {
    // There is a previous snapshot.
    await suite.publish(PACKAGES);
    const { afterwards } = await overtake(() => start('cli/rollback'), 'before', isFlip);
    expect(await sleeper.exit()).to.equal(1);
    await expectUnchanged(afterwards);
  });

  it('does not replace a newer snapshot if it resumes during its load, and cleans up', async () => {
    const begin = async () => {
      sleeper = spawnReplica(suite, { ELASTICSEARCH_URL: suite.proxy.url });
      expect((await request((await sleeper.url()) + REBUILD)).status).to.equal(202);
    };
    const { afterwards } = await overtake(begin, 'before', isBulk);
    await sleeper.prints(/the rebuild failed/, 20_000);
    // The load, which continued, has not created another index.
    await expectUnchanged(afterwards);
    const { body } = await suite.service.get(REBUILD);
    expect(body.last_failure, 'cleared by the later success').to.equal(null);
    await suite.service.idle();
  });

  reading.itNoticesNothing();
});

describe('A discarded index', function () {
  this.timeout(120_000);
  const packages = packagesNamed(['alpha', 'beta']);
  const suite = useProxiedService(() => packages);

  /** Creates an empty index. */
  async function create(): Promise<string> {
    const { alias, elasticsearch, server } = suite.service;
    const index = newIndexName(alias, new Date());
    const meta = server.snapshots.current?.meta ?? expect.fail('no snapshot is served');
    await createIndex(elasticsearch, 'packages', { index, meta }, STEP);
    return index;
  }

  it('cannot go live by a late flip', async () => {
    const { alias, elasticsearch } = suite.service;
    const before = await keptIndices(suite.service);
    const indices = await suite.service.indices();
    const index = await create();
    const viaProxy = new Client({ node: suite.proxy.url });
    const deletion = suite.proxy.hold('before', (method) => method === 'DELETE');
    const discarded = discard(viaProxy, index);
    await deletion.arrived;
    await rejects(flip(elasticsearch, alias, { from: before[0], to: index }, STEP), {
      message: 'another rebuild or a rollback changed what is served meanwhile',
    });
    deletion.release();
    await discarded;
    await viaProxy.close();
    expect(await keptIndices(suite.service)).to.deep.equal(before);
    expect(await suite.service.indices()).to.deep.equal(indices);
  });

  it('is not deleted by a process whose snapshot is no longer served', async () => {
    const { alias, elasticsearch } = suite.service;
    await suite.publish(packages);
    const [, previous = ''] = await keptIndices(suite.service);
    const index = await create();
    await prune(elasticsearch, alias, [index], { ...STEP, served: previous });
    expect(await suite.service.indices()).to.include(index);
    await discard(elasticsearch, index);
  });

  it('is kept if it is live because only the response to its flip was lost', async () => {
    const { alias, elasticsearch } = suite.service;
    const [current] = await keptIndices(suite.service);
    const index = await create();
    await flip(elasticsearch, alias, { from: current, to: index }, STEP);
    await discard(elasticsearch, index);
    expect(await keptIndices(suite.service)).to.deep.equal([index, current]);
    // Replaces the empty index.
    await suite.publish(packages);
  });

  it('is served if only the response to its flip was late: the alias decides', async () => {
    const { alias } = suite.service;
    const [current] = await keptIndices(suite.service);
    const index = await create();
    const impatient = new Client({ node: suite.proxy.url, requestTimeout: 500, maxRetries: 0 });
    const late = suite.proxy.hold('after', isFlip);
    await flip(impatient, alias, { from: current, to: index }, STEP);
    late.release();
    await impatient.close();
    expect(await keptIndices(suite.service)).to.deep.equal([index, current]);
    await suite.publish(packages);
  });

  it('may be served or not if Elasticsearch stops responding, which the error says', async () => {
    const { alias, elasticsearch } = suite.service;
    const before = await keptIndices(suite.service);
    const index = await create();
    const impatient = new Client({ node: suite.proxy.url, requestTimeout: 300, maxRetries: 0 });
    const hang = suite.proxy.hang();
    const options = { ...STEP, stallMs: 600, pauseMs: 50 };
    const flipped = flip(impatient, alias, { from: before[0], to: index }, options);
    await rejects(flipped, { name: 'FlipError' });
    hang.release();
    await impatient.close();
    await discard(elasticsearch, index);
    expect(await keptIndices(suite.service)).to.deep.equal(before);
  });

  it('is never the previous snapshot, even if the current index was deleted by hand', async () => {
    const { elasticsearch, server } = suite.service;
    await suite.publish(packages);
    const [current = '', previous] = await keptIndices(suite.service);
    await elasticsearch.indices.delete({ index: current });
    // The next check finds no index, and a cold start builds one.
    await waitFor(() => server.rebuilds.counts.rebuilt > 0, 'a cold start', 20_000);
    const [rebuilt, kept] = await keptIndices(suite.service);
    expect(rebuilt).not.to.equal(current);
    expect(kept).to.equal(previous);
    // The rebuild is counted before this replica has read the alias.
    const search = () => suite.service.get('/search?q=alpha');
    await waitFor(async () => (await search()).status === 200, 'the new snapshot to be served');
    expect((await search()).body.count).to.equal(1);
  });
});
