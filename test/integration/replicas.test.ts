import { expect } from 'chai';
import { bundledPackages, datasetFile, packagesNamed, toCsv } from '../support/datasets.js';
import { datasetServer, heldBack } from '../support/dataset-server.js';
import { expectProblem } from '../support/expect-problem.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { servedIndex } from '../support/served-index.js';
import {
  newSlug,
  REBUILD,
  startService,
  useService,
  type TestResponse,
  type Service,
} from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('Three replicas', function () {
  this.timeout(120_000);
  const suite = useService(
    () => bundledPackages().slice(0, 5000),
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [5000]);
  const replicas: Service[] = [];

  before(async () => {
    const { slug } = suite.service;
    replicas.push(suite.service);
    for (let i = 0; i < 2; i++) replicas.push(await startService({ DATASET_URL: suite.dataset.url }, slug));
  });

  after(async () => {
    for (const replica of replicas.slice(1)) await replica.stop();
  });

  const idle = async () => {
    for (const replica of replicas) await replica.idle();
  };

  it('accept one of twenty concurrent rebuild requests, and build one generation', async () => {
    const before = await servedIndex(suite.service);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (replicas[i % 3] as Service).get(REBUILD)),
    );
    const accepted = answers.filter(({ status }) => status === 202);
    expect(accepted).to.have.length(1);
    for (const answer of answers.filter((one) => one !== accepted[0])) {
      expectProblem(answer, 503, 'rebuilding');
      expect(answer.headers.get('Retry-After')).to.equal('5');
    }
    await idle();
    const index = await servedIndex(suite.service);
    expect(index).not.to.equal(before);
    expect((await suite.service.indices()).sort()).to.deep.equal([before, index].sort());
    for (const { server } of replicas) {
      await waitFor(() => server.generations.current?.index === index, 'every replica to notice', 3000);
    }
  });

  it('report the same progress, whichever of them rebuilds', async () => {
    const held = heldBack(() => toCsv(packagesNamed(['only'])));
    const origin = await datasetServer(held.listener);
    const slug = newSlug();
    const first = await startService({ DATASET_URL: origin.url }, slug);
    const second = await startService({ DATASET_URL: origin.url }, slug);
    try {
      await waitFor(
        () => [first, second].some(({ server }) => server.rebuilds.progress !== undefined),
        'the first build to start',
      );
      const told: TestResponse[] = [await first.get(REBUILD), await second.get(REBUILD)];
      for (const answer of told) {
        expectProblem(answer, 503, 'rebuilding');
        expect(answer.body).to.include({ phase: 'downloading', rows: 0 });
      }
      expect(told[0]?.body.started_at).to.equal(told[1]?.body.started_at);
    } finally {
      held.release();
      await second.stop();
      await first.end();
      await origin.close();
    }
  });

  it('report why the last rebuild failed, whichever of them ran it', async () => {
    const good = toCsv(bundledPackages().slice(0, 5000));
    await suite.dataset.write('package_no,name,version,url\n1,broken\n');
    expect((await (replicas[1] as Service).get(REBUILD)).status).to.equal(202);
    await idle();
    await suite.dataset.write(good);
    const accepted = await (replicas[2] as Service).get(REBUILD);
    expect(accepted.status).to.equal(202);
    expect(accepted.body.last_failure.reason).to.equal('line 2: 2 fields instead of 4');
    await idle();
    expect((await suite.service.get(REBUILD)).body.last_failure).to.equal(null);
    await idle();
  });

  reading.itNoticesNothing();
});

describe('A cold start of three replicas at once', function () {
  this.timeout(120_000);

  it('builds once, and all are ready within two seconds of the flip', async () => {
    const dataset = await datasetFile(toCsv(bundledPackages().slice(0, 20_000)));
    const slug = newSlug();
    const replicas = await Promise.all(
      Array.from({ length: 3 }, () => startService({ DATASET_URL: dataset.url }, slug)),
    );
    try {
      const [first] = replicas as [Service];
      await waitFor(
        async () => (await servedIndex(first).catch(() => undefined)) !== undefined,
        'the flip',
        60_000,
      );
      const flipped = Date.now();
      await Promise.all(
        replicas.map((replica) =>
          waitFor(async () => (await replica.get('/health')).status === 200, 'a replica', 5000),
        ),
      );
      expect(Date.now() - flipped, 'milliseconds').to.be.lessThan(2000);
      await waitFor(() => replicas.every(({ server }) => server.rebuilds.progress === undefined), 'the end');
      expect(await first.indices()).to.have.length(1);
    } finally {
      for (const replica of replicas.slice(1)) await replica.stop();
      await replicas[0]?.end();
      await dataset.remove();
    }
  });
});
