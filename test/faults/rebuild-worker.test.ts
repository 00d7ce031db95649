import { readFile } from 'node:fs/promises';
import { getPriority, setPriority } from 'node:os';
import { expect } from 'chai';
import { datasetServer, heldBack, type DatasetServer } from '../support/dataset-server.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { REBUILD, startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { isRunning, temporaryFilesOf, workersOf } from '../support/worker-processes.js';

/** A worker that is silent for longer is killed. */
const SILENCE_MS = 30_000;

const PACKAGES = bundledPackages().slice(0, 1000);
const OTHERS = bundledPackages().slice(0, 990);

describe('The process of a rebuild', function () {
  this.timeout(120_000);
  const suite = useService(
    () => PACKAGES,
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [PACKAGES.length, OTHERS.length]);
  const held = () => heldBack(() => toCsv(OTHERS));
  let origin: DatasetServer;
  let answer: ReturnType<typeof held>;
  /** Indices before the test. */
  let indices: string[];

  before(async () => {
    origin = await datasetServer((request, response) => answer.listener(request, response));
  });
  beforeEach(async () => {
    answer = held();
    indices = await suite.service.indices();
  });
  after(() => origin.close());

  /** Starts a replica of the suite's service that downloads until the test releases the dataset. */
  async function rebuilding(env: Record<string, string> = {}): Promise<[Service, worker: number]> {
    const before = new Set(workersOf());
    const replica = await startService({ DATASET_URL: origin.url, ...env }, suite.service.slug);
    await waitFor(
      async () => (await replica.get(REBUILD)).status === 202,
      'the lock of a killed worker to expire',
      15_000,
    );
    const [worker = NaN, ...others] = workersOf().filter((pid) => !before.has(pid));
    expect(others).to.deep.equal([]);
    return [replica, worker];
  }

  async function expectNothingLeft(replica: Service, worker: number): Promise<void> {
    expect(await suite.service.indices()).to.deep.equal(indices);
    expect(await temporaryFilesOf(worker)).to.deep.equal([]);
    expect((await replica.get('/search?q=lib&limit=1')).status).to.equal(200);
  }

  it('has a lower priority than searches, and is killed first if memory runs out', async () => {
    // Relative to the niceness of the server.
    const niceness = getPriority();
    setPriority(niceness + 3);
    const [replica, worker] = await rebuilding();
    expect(getPriority(worker)).to.equal(niceness + 3 + 5);
    // Only root can undo this; otherwise the rest of the run keeps it.
    if (process.getuid?.() === 0) setPriority(niceness);
    expect(Number(await readFile(`/proc/${worker}/oom_score_adj`, 'utf8'))).to.equal(500);
    expect(await readFile(`/proc/${worker}/cmdline`, 'utf8')).to.contain('--max-old-space-size=');
    await replica.stop();
    expect(isRunning(worker)).to.equal(false);
    await expectNothingLeft(suite.service, worker);
  });

  it('stops on signals like the server, and cleans up', async () => {
    const [replica, worker] = await rebuilding();
    process.kill(worker, 'SIGTERM');
    await replica.idle();
    expect(replica.server.rebuilds.counts).to.include({ stopped: 1, failed: 0 });
    await expectNothingLeft(replica, worker);
    await replica.stop();
  });

  for (const [what, env] of [
    ['with', {}],
    ['without', { REDIS_URL: '' }],
  ] as const) {
    it(`may be killed, ${what} Redis: the reason is reported, and the next rebuild succeeds`, async () => {
      const [replica, worker] = await rebuilding(env);
      process.kill(worker, 'SIGKILL');
      await replica.idle();
      const reason = 'the rebuild process ended unexpectedly (SIGKILL)';
      expect(replica.server.rebuilds.lastFailure?.reason).to.equal(reason);
      await expectNothingLeft(replica, worker);
      answer.release();
      await waitFor(
        async () => {
          const { status, body } = await replica.get(`${REBUILD}&force=true`);
          expect(body.last_failure).to.include({ reason });
          return status === 202;
        },
        'the lock to expire',
        15_000,
      );
      await replica.idle();
      expect(replica.server.rebuilds.lastFailure).to.equal(undefined);
      expect((await replica.get('/health')).body.total_packages).to.equal(OTHERS.length);
      await replica.stop();
      await suite.service.rebuild('&force=true');
    });
  }

  for (const [how, program] of [
    ['emits', '/nowhere/node'],
    // A path that is too long: Node throws this error instead of emitting it.
    ['throws', `/${'x'.repeat(5000)}`],
  ] as const) {
    it(`may fail to start with an error that Node ${how}: /rebuild reports it, and the server keeps running`, async () => {
      const { execPath } = process;
      process.execPath = program;
      const failed = suite.service.server.rebuilds.counts.failed;
      try {
        const refused = await suite.service.get(REBUILD);
        expectProblem(refused, 503, 'search_unavailable');
        expect(refused.headers.get('Retry-After')).to.equal('5');
        expect(refused.body.detail).to.equal('the rebuild process could not be started');
      } finally {
        process.execPath = execPath;
      }
      expect(suite.service.server.rebuilds.counts.failed).to.equal(failed + 1);
      const { reason = '' } = suite.service.server.rebuilds.lastFailure ?? {};
      expect(reason).to.match(/^the rebuild process could not be started/);
      expect(reason.length).to.be.at.most(500);
      expect((await suite.service.rebuild()).status).to.equal(202);
      expect(suite.service.server.rebuilds.lastFailure).to.equal(undefined);
    });
  }

  it('is killed if it does not respond, and the server stops in time', async () => {
    const [replica, worker] = await rebuilding();
    process.kill(worker, 'SIGSTOP');
    const began = performance.now();
    await replica.stop();
    expect(performance.now() - began).to.be.lessThan(9_500);
    await waitFor(() => !isRunning(worker), 'the worker to exit', 1000);
  });

  it('is killed if it has not responded for half a minute', async () => {
    const [replica, worker] = await rebuilding();
    process.kill(worker, 'SIGSTOP');
    const began = performance.now();
    // Another replica takes over once the lock has expired.
    await waitFor(
      async () => (await suite.service.get(REBUILD)).status === 202,
      'the lock to expire',
      15_000,
    );
    await suite.service.idle();
    indices = await suite.service.indices();
    await waitFor(() => !isRunning(worker), 'the worker to exit', SILENCE_MS + 10_000);
    expect(performance.now() - began).to.be.greaterThan(SILENCE_MS - 2000);
    await replica.idle();
    expect(replica.server.rebuilds.lastFailure?.reason).to.contain('SIGKILL');
    await expectNothingLeft(replica, worker);
    // The latest rebuild of all replicas has succeeded.
    expect((await suite.service.get(REBUILD)).body.last_failure).to.equal(null);
    await suite.service.idle();
    await replica.stop();
  });

  reading.itNoticesNothing();
});
