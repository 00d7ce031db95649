import { expect } from 'chai';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { datasetServer, heldBack, type DatasetServer } from '../support/dataset-server.js';
import { expectProblem } from '../support/expect-problem.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { servedIndex } from '../support/served-index.js';
import { REBUILD, startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('Three replicas', function () {
  this.timeout(60_000);
  const csv = toCsv(bundledPackages().slice(300, 600));
  const good = heldBack(() => csv);
  good.release();
  let { listener } = good;
  let origin: DatasetServer;
  before(async () => {
    origin = await datasetServer((request, response) => listener(request, response));
  });
  const env = () => ({ DATASET_URL: origin.url, ...UNCACHED });
  const suite = useService(() => [], env);
  const reading = useBackgroundReader(suite, [300]);
  let replicas: [Service, Service, Service];
  before(async () => {
    const { service } = suite;
    replicas = [service, await startService(env(), service.slug), await startService(env(), service.slug)];
  });
  after(async () => {
    for (const replica of replicas.slice(1)) await replica.stop();
    await origin.close();
  });
  beforeEach(() => {
    listener = good.listener;
  });

  const idle = async () => {
    for (const replica of replicas) await replica.idle();
  };

  it('accept one of twenty concurrent rebuild requests', async () => {
    const before = await servedIndex(suite.service);
    const held = heldBack(() => csv);
    listener = held.listener;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (replicas[i % 3] as Service).get(REBUILD)),
    ).finally(held.release);
    const refused = answers.filter(({ status }) => status !== 202);
    expect(refused).to.have.length(19);
    for (const answer of refused) {
      expectProblem(answer, 503, 'rebuilding');
      expect(answer.headers.get('Retry-After')).to.equal('5');
    }
    await idle();
    const index = await servedIndex(suite.service);
    expect(index).not.to.equal(before);
    expect(await suite.service.indices()).to.have.members([before, index]);
    for (const replica of replicas)
      await waitFor(async () => index.endsWith(await replica.snapshot()), 'every replica to notice');
  });

  it('report equal progress and the reason of the last failure, whichever replica rebuilds', async () => {
    const [first, second, third] = replicas;
    listener = (_request, response) => response.end('package_no,name,version,url\n1,broken\n');
    expect((await second.rebuild()).status).to.equal(202);
    const held = heldBack(() => csv);
    listener = held.listener;
    try {
      const accepted = await third.get(REBUILD);
      expect(accepted.status).to.equal(202);
      expect(accepted.body.last_failure.reason).to.equal('line 2: 2 fields instead of 4');
      for (const replica of replicas) {
        const { started_at } = accepted.body as { started_at: string };
        const answer = await replica.get(REBUILD);
        expectProblem(answer, 503, 'rebuilding');
        expect(answer.body).to.include({ phase: 'downloading', rows: 0, started_at });
      }
    } finally {
      held.release();
      await idle();
    }
    expect((await first.rebuild()).body.last_failure).to.equal(null);
  });

  reading.itNoticesNothing();
});
