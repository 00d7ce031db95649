import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { rebuildsIndexOf } from '../../src/snapshot/index-names.js';
import { ADMINISTRATOR, ADMINISTRATOR_AUTH, makeKeys, type Keys } from '../support/api-keys.js';
import { startCluster, type Cluster, type ClusterNode } from '../support/cluster.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { repeat } from '../support/repeat.js';
import { newSlug, REBUILD, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const OLD = bundledPackages().slice(0, 5000);
const NEW = bundledPackages();

/** Longer than any search timeout. */
const PAUSE_MS = 5000;

/** How long a node hangs, in milliseconds: shorter than the time after which the cluster excludes it. */
const HANG_MS = 20_000;

/** Pause between two searches of a loop while a node hangs, in milliseconds. */
const LOOP_PAUSE_MS = 50;

/** Maximum time of a request in flight during the promotion, in milliseconds. */
const SEARCH_MS = 2000;

/** Fills a node with indices, so that new ones are allocated to other nodes. */
async function burden({ elasticsearch, slug }: Service, { name }: ClusterNode): Promise<void> {
  for (let i = 0; i < 9; i++) {
    await elasticsearch.indices.create({
      index: `${slug}-burden-${name}-${newSlug()}`,
      settings: { number_of_replicas: 0, 'index.routing.allocation.require._name': name },
    });
  }
}

describe('A cluster node that fails during a load', function () {
  this.timeout(300_000);
  const slug = newSlug();
  let cluster: Cluster;
  let keys: Keys;
  let first: ClusterNode;
  /** The cluster keeps working without it. */
  let second: ClusterNode;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    cluster = await startCluster(['master', 'data'], { administrator: ADMINISTRATOR });
    keys = await makeKeys(slug, cluster.url);
    [first, second] = cluster.nodes as [ClusterNode, ClusterNode];
  });
  const suite = useService(
    () => OLD,
    () => ({ ELASTICSEARCH_URL: cluster.url, ...keys, ...UNCACHED }),
    { slug, auth: ADMINISTRATOR_AUTH },
  );
  const reading = useBackgroundReader(suite, [OLD.length, NEW.length]);
  before(async () => {
    const { elasticsearch, alias } = suite.service;
    // Waits until both nodes have a copy of the served index.
    await elasticsearch.cluster.health({ index: alias, wait_for_status: 'green', timeout: '60s' });
    await burden(suite.service, first);
  });
  after(() => cluster.stop());

  /** Rebuilds, and takes the second node, which alone has the new index, down and up again during the load. */
  async function expectRebuiltDespite(fault: () => Promise<unknown>): Promise<void> {
    const { service, dataset } = suite;
    await dataset.write(toCsv(NEW));
    const served = await service.indices();
    expect((await service.get(`${REBUILD}&force=true`)).status).to.equal(202);
    await service.loading();
    const index = (await service.indices()).filter((name) => !served.includes(name));
    const shards = await service.elasticsearch.cat.shards({ index, format: 'json', h: ['node'] });
    expect(shards.map(({ node }) => node)).to.deep.equal([second.name]);
    await fault();
    await service.idle(120_000);
    expect(service.failure()).to.be.undefined;
    expect((await service.get('/health')).body.total_packages).to.equal(NEW.length);
    expect(await service.indices()).to.have.length(2);
  }

  it('may hang for a while: the load resumes afterwards', () =>
    expectRebuiltDespite(async () => {
      await second.pause();
      await pause(PAUSE_MS).finally(() => second.resume());
    }));

  it('may be killed and restarted: the load resumes afterwards', () =>
    expectRebuiltDespite(async () => {
      await second.kill();
      await pause(1000);
      await second.restart();
    }));

  reading.itNoticesNothing();
});

describe('A killed or hanging node of three', function () {
  this.timeout(300_000);
  const slug = newSlug();
  let cluster: Cluster;
  let keys: Keys;
  /** The first node that was killed. */
  let killed: ClusterNode | undefined;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    cluster = await startCluster(['master', 'master', 'master'], { administrator: ADMINISTRATOR });
    keys = await makeKeys(slug, cluster.url);
  });
  const suite = useService(
    () => OLD,
    () => ({ ELASTICSEARCH_URL: cluster.url, ...keys, INDEX_REPLICAS: '1', ...UNCACHED }),
    { slug, auth: ADMINISTRATOR_AUTH },
  );
  const reading = useBackgroundReader(suite, [OLD.length], 2);
  after(() => cluster.stop());

  /** The nodes with a copy of an index, by default the served one; the one with the primary first. */
  async function holders(index = suite.service.alias): Promise<string[]> {
    const shards = await suite.service.elasticsearch.cat.shards({
      index,
      format: 'json',
      h: ['node'],
      s: ['prirep'],
    });
    return shards.flatMap(({ node }) => node ?? []);
  }

  /** Waits until all nodes and copies are there. */
  async function green(): Promise<void> {
    const { timed_out: timedOut } = await suite.service.elasticsearch.cluster.health({
      wait_for_nodes: '3',
      wait_for_status: 'green',
      wait_for_no_relocating_shards: true,
      timeout: '60s',
    });
    expect(timedOut, 'green again').to.equal(false);
  }

  /** Searches in loops for some seconds. @returns the durations in milliseconds, and the number of failed searches. */
  async function search(loops: number): Promise<{ ms: number[]; failed: number }> {
    const ms: number[] = [];
    let failed = 0;
    const stop = repeat(loops, async () => {
      const began = performance.now();
      const { status } = await suite.service.get('/search?q=lib&limit=5');
      ms.push(performance.now() - began);
      if (status !== 200) failed++;
      await pause(LOOP_PAUSE_MS);
    });
    await pause(HANG_MS).then(stop);
    return { ms: ms.sort((a, b) => a - b), failed };
  }

  const nodeNamed = (name: string | undefined) =>
    cluster.nodes.find((node) => node.name === name) ?? expect.fail(`there is no node ${name}`);

  /** Kills a node, waits for another primary, and lets searches continue for a while. */
  async function kill(node: ClusterNode): Promise<void> {
    const began = performance.now();
    reading.engineMayBeAway = true;
    await node.kill();
    await waitFor(
      async () => !(await holders().catch(() => [node.name])).includes(node.name),
      'another primary',
      30_000,
    );
    const promotedMs = performance.now() - began;
    await pause(PAUSE_MS);
    reading.engineMayBeAway = false;
    const last = reading.away.findLast((at) => at > began) ?? began;
    expect(last - began, 'the last 503').to.be.at.most(promotedMs + SEARCH_MS);
  }

  async function expectRebuilt(): Promise<void> {
    expect((await suite.service.rebuild()).status).to.equal(202);
    expect(suite.service.failure()).to.be.undefined;
    expect(await suite.service.indices()).to.have.length(2);
    expect(await holders(), 'a primary and its copy').to.have.length(2);
  }

  it('with the primary delays few searches while it hangs, and fails at most 1 % of them', async () => {
    const [primary] = await holders();
    const node = nodeNamed(primary);
    reading.engineMayBeAway = true;
    await node.pause();
    const { ms, failed } = await search(4).finally(() => node.resume());
    expect(failed / ms.length, `${failed} of ${ms.length} searches failed`).to.be.at.most(0.01);
    expect(ms[Math.floor(ms.length * 0.99)], 'milliseconds, p99').to.be.at.most(SEARCH_MS);
    await green();
    reading.engineMayBeAway = false;
  });

  it('with the primary does not stop searches or the next rebuild on the other two nodes', async () => {
    const [primary] = await holders();
    killed = nodeNamed(primary);
    await kill(killed);
    await expectRebuilt();
    expect(await holders()).not.to.include(killed.name);
    await killed.restart();
  });

  it('gets copies again after its restart', async () => {
    const { service } = suite;
    await green();
    const [another] = cluster.nodes.filter(({ name }) => name !== killed?.name);
    await burden(service, another as ClusterNode);
    await expectRebuilt();
    expect(await holders()).to.include(killed?.name);
  });

  it('with the lock of a rebuild does not stop the rebuild', async () => {
    await green();
    const { service } = suite;
    const [primary] = await holders(rebuildsIndexOf(slug));
    const node = nodeNamed(primary);
    await burden(service, node);
    expect((await service.get(`${REBUILD}&force=true`)).status).to.equal(202);
    await kill(node);
    await service.idle(120_000);
    expect(service.outcomes()).to.include({ failed: 0, stopped: 0 });
    expect(await holders(rebuildsIndexOf(slug))).not.to.include(node.name);
    expect((await service.rebuild()).status).to.equal(202);
    await node.restart();
    await green();
  });

  it('that is the elected master does not stop searches or the next rebuild', async () => {
    const [elected] = await suite.service.elasticsearch.cat.master({ format: 'json' });
    await kill(nodeNamed(elected?.node));
    await expectRebuilt();
  });

  reading.itNoticesNothing();
});
