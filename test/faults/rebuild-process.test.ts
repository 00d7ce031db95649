import { readFile } from 'node:fs/promises';
import { getPriority, setPriority } from 'node:os';
import { expect } from 'chai';
import { datasetServer, heldBack, type DatasetServer } from '../support/dataset-server.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { endLock } from '../support/replicas.js';
import { REBUILD, startService, useService, type Service } from '../support/service.js';
import { runCommand } from '../support/spawn-cli.js';
import { waitFor } from '../support/wait-for.js';
import { isRunning, rebuildsOf } from '../support/rebuild-processes.js';

const PACKAGES = bundledPackages().slice(0, 1000);
const OTHERS = bundledPackages().slice(0, 990);

describe('The process of a rebuild', function () {
  this.timeout(120_000);
  const suite = useService(
    () => PACKAGES,
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [PACKAGES.length, OTHERS.length]);
  let origin: DatasetServer;
  let answer: ReturnType<typeof heldBack>;
  /** Indices before the test. */
  let indices: string[];
  let replica: Service | undefined;

  before(async () => {
    origin = await datasetServer((request, response) => answer.listener(request, response));
  });
  beforeEach(async () => {
    answer = heldBack(() => toCsv(OTHERS));
    indices = await suite.service.indices();
  });
  afterEach(async () => {
    await replica?.stop();
    replica = undefined;
  });
  after(() => origin.close());

  /** Calls `start`. @returns the worker that it has started. */
  async function workerOf(start: () => Promise<unknown>): Promise<number> {
    const before = rebuildsOf();
    await start();
    const [worker = NaN, ...others] = rebuildsOf().filter((pid) => !before.includes(pid));
    expect(others).to.deep.equal([]);
    return worker;
  }

  /** Starts a replica of the suite's service that downloads until the test releases the dataset. */
  async function rebuilding(env: Record<string, string> = {}): Promise<[Service, worker: number]> {
    const started = await startService({ DATASET_URL: origin.url, ...env }, suite.service.slug);
    replica = started;
    const worker = await workerOf(async () => {
      expect((await started.get(REBUILD)).status).to.equal(202);
    });
    return [started, worker];
  }

  async function expectNothingLeft(worker: number): Promise<void> {
    expect(isRunning(worker)).to.equal(false);
    expect(await suite.service.indices()).to.deep.equal(indices);
    expect((await suite.service.get('/search?q=lib&limit=1')).status).to.equal(200);
  }

  it('yields the processor and the memory to searches', async () => {
    // Relative to the niceness of the server.
    const niceness = getPriority();
    setPriority(niceness + 3);
    const [own, worker] = await rebuilding();
    await waitFor(() => getPriority(worker) === niceness + 3 + 5, 'the lower priority');
    // Only root can undo this; otherwise the rest of the run keeps it.
    if (process.getuid?.() === 0) setPriority(niceness);
    expect(Number(await readFile(`/proc/${worker}/oom_score_adj`, 'utf8'))).to.equal(500);
    expect(await readFile(`/proc/${worker}/cmdline`, 'utf8')).to.contain('--max-old-space-size=');
    await own.stop();
    await expectNothingLeft(worker);
  });

  it('is the only one, however many servers and commands start one at once', async () => {
    const env = { DATASET_URL: origin.url, REDIS_URL: '' };
    const own = await startService(env, suite.service.slug);
    replica = own;
    const other = await startService(env, suite.service.slug);
    const before = rebuildsOf();
    const command = runCommand('cli/rebuild', { ...suite.service.env, ...env }, ['--force']);
    const servers = [own, own, own, other, other, other];
    const answers = await Promise.all(servers.map((server) => server.get(REBUILD)));
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([202, 503, 503, 503, 503, 503]);
    expect(rebuildsOf().filter((pid) => !before.includes(pid))).to.have.length(1);
    expect((await command).code).to.equal(3);
    await other.stop();
  });

  it('does not end the server if it cannot start', async () => {
    const { execPath } = process;
    // Node emits the first error and throws the second, of a path that is too long.
    for (const program of ['/nowhere/node', `/${'x'.repeat(5000)}`]) {
      process.execPath = program;
      const refused = await suite.service.get(REBUILD).finally(() => (process.execPath = execPath));
      const detail = expectProblem(refused, 503, 'search_unavailable');
      expect(refused.headers.get('Retry-After')).to.equal('5');
      expect(detail).to.equal('the rebuild process could not be started');
    }
    const { status, body } = await suite.service.rebuild('&force=true');
    expect(status).to.equal(202);
    expect(body.last_failure.reason).to.match(/^the rebuild process could not be started/);
    expect(body.last_failure.reason).to.have.length.at.most(500);
  });

  it('does not keep its server from the next one if it is suspended', async () => {
    const [own, worker] = await rebuilding();
    process.kill(worker, 'SIGSTOP');
    expect((await own.get(REBUILD)).status).to.equal(503);
    await endLock(suite.service);
    expect((await own.get(`${REBUILD}&force=true`)).status).to.equal(202);
    process.kill(worker, 'SIGKILL');
    answer.release();
    await own.idle();
    expect((await own.get('/health')).body.total_packages).to.equal(OTHERS.length);
  });

  reading.itNoticesNothing();
});
