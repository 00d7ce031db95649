import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { startCluster, type Cluster } from '../support/cluster.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { UNCACHED, useReader } from '../support/reader.js';
import { REBUILD, useService } from '../support/service.js';

const OLD = bundledPackages().slice(0, 5000);
const NEW = bundledPackages();

/** Longer than any time-out of a search. */
const PAUSE_MS = 5000;

describe('A node of a cluster that goes away while it is being loaded', function () {
  this.timeout(180_000);
  let cluster: Cluster;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    cluster = await startCluster();
  });
  const suite = useService(
    () => OLD,
    () => ({ ELASTICSEARCH_URL: `${cluster.first.url},${cluster.second.url}`, ...UNCACHED }),
  );
  const reading = useReader(suite, [OLD.length, NEW.length]);
  before(async () => {
    const { elasticsearch, alias } = suite.service;
    // Both nodes have a copy of what is served.
    await elasticsearch.cluster.health({ index: alias, wait_for_status: 'green', timeout: '60s' });
    // And the first one has enough others for new indices to go to the second.
    for (let i = 0; i < 6; i++) {
      await elasticsearch.indices.create({
        index: `${suite.service.slug}-burden-${i}`,
        settings: { number_of_replicas: 0, 'index.routing.allocation.require._name': cluster.first.name },
      });
    }
  });
  after(() => cluster.stop());

  /** Begins a rebuild and waits until the second node, and it alone, is being loaded. */
  async function loadSecond(csv: string): Promise<void> {
    await suite.dataset.write(csv);
    const served = await suite.service.indices();
    expect((await suite.service.get(`${REBUILD}&force=true`)).status).to.equal(202);
    await suite.service.loading();
    const index = (await suite.service.indices()).find((name) => !served.includes(name));
    const shards = await suite.service.elasticsearch.cat.shards({
      index: index ?? '',
      format: 'json',
      h: ['node'],
    });
    expect(shards.map(({ node }) => node)).to.deep.equal([cluster.second.name]);
  }

  async function expectRebuilt(total: number): Promise<void> {
    await suite.service.idle(120_000);
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect((await suite.service.get('/health')).body.total_packages).to.equal(total);
    expect(await suite.service.indices()).to.have.length(2);
  }

  it('stands still for a while, and the load goes on when it does', async () => {
    await loadSecond(toCsv(NEW));
    await cluster.second.pause();
    try {
      await pause(PAUSE_MS);
    } finally {
      await cluster.second.resume();
    }
    await expectRebuilt(NEW.length);
  });

  it('is killed and started again, and the load goes on when it is back', async () => {
    await loadSecond(toCsv(NEW));
    await cluster.second.kill();
    await pause(1000);
    await cluster.second.revive();
    await expectRebuilt(NEW.length);
  });

  reading.itNoticesNothing();
});
