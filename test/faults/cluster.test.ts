import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { startCluster, type Cluster, type ClusterNode } from '../support/cluster.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { REBUILD, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const OLD = bundledPackages().slice(0, 5000);
const NEW = bundledPackages();

/** Longer than any search timeout. */
const PAUSE_MS = 5000;

/** Maximum time of a request in flight during the promotion, in milliseconds. */
const SEARCH_MS = 2000;

/** Fills a node with indices, so that new ones are allocated to other nodes. */
async function burden({ elasticsearch, slug }: Service, { name }: ClusterNode): Promise<void> {
  for (let i = 0; i < 6; i++) {
    await elasticsearch.indices.create({
      index: `${slug}-burden-${name}-${i}`,
      settings: { number_of_replicas: 0, 'index.routing.allocation.require._name': name },
    });
  }
}

describe('A cluster node that fails during a load', function () {
  this.timeout(300_000);
  let cluster: Cluster;
  let first: ClusterNode;
  /** The cluster keeps working without it. */
  let second: ClusterNode;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    cluster = await startCluster(['master', 'data']);
    [first, second] = cluster.nodes as [ClusterNode, ClusterNode];
  });
  const suite = useService(
    () => OLD,
    () => ({ ELASTICSEARCH_URL: cluster.url, ...UNCACHED }),
  );
  const reading = useBackgroundReader(suite, [OLD.length, NEW.length]);
  before(async () => {
    const { elasticsearch, alias } = suite.service;
    // Waits until both nodes have a copy of the served index.
    await elasticsearch.cluster.health({ index: alias, wait_for_status: 'green', timeout: '60s' });
    await burden(suite.service, first);
  });
  after(() => cluster.stop());

  /** Starts a rebuild and waits until it loads, on the second node only. */
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
    expect(shards.map(({ node }) => node)).to.deep.equal([second.name]);
  }

  async function expectRebuilt(total: number): Promise<void> {
    await suite.service.idle(120_000);
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect((await suite.service.get('/health')).body.total_packages).to.equal(total);
    expect(await suite.service.indices()).to.have.length(2);
  }

  it('may hang for a while: the load resumes afterwards', async () => {
    await loadSecond(toCsv(NEW));
    await second.pause();
    try {
      await pause(PAUSE_MS);
    } finally {
      await second.resume();
    }
    await expectRebuilt(NEW.length);
  });

  it('may be killed and restarted: the load resumes afterwards', async () => {
    await loadSecond(toCsv(NEW));
    await second.kill();
    await pause(1000);
    await second.restart();
    await expectRebuilt(NEW.length);
  });

  reading.itNoticesNothing();
});

describe('A killed node of three', function () {
  this.timeout(300_000);
  let cluster: Cluster;
  /** The first node that was killed. */
  let killed: ClusterNode | undefined;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    cluster = await startCluster(['master', 'master', 'master']);
  });
  const suite = useService(
    () => OLD,
    () => ({ ELASTICSEARCH_URL: cluster.url, INDEX_REPLICAS: '1', ...UNCACHED }),
  );
  const reading = useBackgroundReader(suite, [OLD.length], 2);
  after(() => cluster.stop());

  /** The nodes with a copy of the served index, the one with the primary first. */
  async function holders(): Promise<string[]> {
    const { elasticsearch, alias } = suite.service;
    const shards = await elasticsearch.cat.shards({
      index: alias,
      format: 'json',
      h: ['node'],
      s: ['prirep'],
    });
    return shards.flatMap(({ node }) => node ?? []);
  }

  function nodeNamed(name: string | undefined): ClusterNode {
    const node = cluster.nodes.find((one) => one.name === name);
    if (node === undefined) throw new Error(`there is no node ${name}`);
    return node;
  }

  /** Kills a node, waits for another primary, and lets searches continue for a while. */
  async function kill(node: ClusterNode): Promise<void> {
    const began = performance.now();
    const since = () => Math.round(performance.now() - began);
    reading.engineMayBeAway = true;
    await node.kill();
    await waitFor(
      async () => !(await holders().catch(() => [node.name])).includes(node.name),
      'another primary',
      30_000,
    );
    const promotedMs = since();
    await pause(PAUSE_MS);
    reading.engineMayBeAway = false;
    const away = reading.away.filter((at) => at > began);
    const awayMs = Math.round((away.at(-1) ?? began) - began);
    console.log(
      `      promotion after ${promotedMs} ms; ${away.length} 503 responses, the last after ${awayMs} ms`,
    );
    expect(awayMs).to.be.at.most(promotedMs + SEARCH_MS);
  }

  async function expectRebuilt(): Promise<void> {
    expect((await suite.service.rebuild()).status).to.equal(202);
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect(await suite.service.indices()).to.have.length(2);
    expect(await holders(), 'a primary and its copy').to.have.length(2);
  }

  it('with the primary does not stop searches or the next rebuild, on the other two', async () => {
    const [primary] = await holders();
    killed = nodeNamed(primary);
    await kill(killed);
    await expectRebuilt();
    expect(await holders()).not.to.include(killed.name);
    await killed.restart();
  });

  it('gets copies again after its restart', async () => {
    const { service } = suite;
    const { timed_out: timedOut } = await service.elasticsearch.cluster.health({
      wait_for_nodes: '3',
      wait_for_status: 'green',
      wait_for_no_relocating_shards: true,
      timeout: '60s',
    });
    expect(timedOut, 'green again').to.equal(false);
    const [another] = cluster.nodes.filter(({ name }) => name !== killed?.name);
    await burden(service, another as ClusterNode);
    await expectRebuilt();
    expect(await holders()).to.include(killed?.name);
  });

  it('that is the elected master does not stop searches or the next rebuild', async () => {
    const [elected] = await suite.service.elasticsearch.cat.master({ format: 'json' });
    await kill(nodeNamed(elected?.node));
    await expectRebuilt();
  });

  reading.itNoticesNothing();
});
