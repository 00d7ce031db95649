import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pick } from '../fixtures/random.js';
import { freePort } from '../../dev/free-port.js';
import { findPaths, makeFolder } from '../../dev/paths.js';
import { run } from '../../dev/run.js';
import { aliasOf, isSnapshotOf, isChangesOf, previousAliasOf } from '../../src/snapshot/index-names.js';
import type { ClusterNode } from '../support/cluster.js';
import { waitFor } from '../support/wait-for.js';
import { startEngines, type Engines } from './engines.js';
import { startHaProxy, type HaProxy } from './haproxy.js';
import { Origin } from './origin.js';
import { Replica } from './replica.js';
import { Snapshots, type Variant } from './snapshots.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const REPLICAS = 3;
const REBUILD_SECRET = 'rebuild-change-me';

/** Requests per client address and minute: readers stay below, a flood does not. */
export const RATE_LIMIT = 2000;

/** Pause between two requests for a rebuild, in milliseconds. */
const POLL_MS = 250;

/** Keys in Redis that outlive a rebuild. */
const KEPT_KEYS = /:limit:|:(last-success|probe)$/;

/** Snapshots whose changes are kept: the 30 before the served one. */
const MOST_CHANGES = 31;

/** How long a lock outlives its rebuild (10 s), and a margin, in milliseconds. */
const LOCK_TIMEOUT_MS = 20_000;

/** How long a rebuild of this dataset may take on a busy machine, in milliseconds. */
const REBUILD_TIMEOUT_MS = 120_000;

/** How long everything may take to recover after a fault, in milliseconds: a node that starts is the slowest. */
const RECOVERY_TIMEOUT_MS = 180_000;

/** The system under test: HAProxy, three replicas, three Elasticsearch nodes, one Redis, and the dataset's server. */
export class Stack {
  readonly alias: string;
  readonly lockKey: string;
  readonly #failureKey: string;

  private constructor(
    readonly slug: string,
    readonly folder: string,
    readonly random: () => number,
    readonly engines: Engines,
    readonly origin: Origin,
    readonly replicas: readonly Replica[],
    readonly proxy: HaProxy,
    readonly snapshots: Snapshots,
  ) {
    this.alias = aliasOf(slug);
    this.lockKey = `${slug}:rebuild-v2:lock`;
    this.#failureKey = `${slug}:rebuild-v2:last-failure`;
  }

  /** Starts everything and loads the first two snapshots. */
  static async start(variants: readonly Variant[], random: () => number): Promise<Stack> {
    const { runAs } = findPaths(process.env);
    const folder = makeFolder(await mkdtemp(join(tmpdir(), 'package-registry-search-soak-')), runAs);
    const slug = `soak${randomBytes(4).toString('hex')}`;
    const engines = await startEngines(folder);
    const origin = await Origin.start(variants);
    const env = {
      ELASTICSEARCH_URL: engines.elasticsearchLinks.map(({ url }) => url).join(','),
      REDIS_URL: engines.redisLink.url,
      REGISTRY_SLUG: slug,
      DATASET_URL: origin.url,
      DATASET_DOWNLOAD_TIMEOUT_SECONDS: '40',
      INDEX_REPLICAS: '1',
      TRUSTED_PROXIES: '127.0.0.1',
      RATE_LIMIT_POINTS: String(RATE_LIMIT),
      CACHE_MAX_BYTES: String(16 * 2 ** 20),
      REBUILD_SECRET,
    };
    const replicas: Replica[] = [];
    for (let i = 1; i <= REPLICAS; i++) {
      const name = `replica-${i}`;
      replicas.push(new Replica(name, await freePort(), makeFolder(join(folder, name), undefined), env));
    }
    const ports = replicas.map(({ port }) => port);
    const proxy = await startHaProxy(folder, ports);
    const nodes = engines.cluster.nodes.map(({ url }) => url);
    const snapshots = new Snapshots(nodes, aliasOf(slug), variants);
    const stack = new Stack(slug, folder, random, engines, origin, replicas, proxy, snapshots);
    for (const replica of replicas) await replica.start();
    await stack.recovered();
    await stack.rebuild();
    return stack;
  }

  /** Stops everything and deletes its files. @param keep keeps the logs. */
  async stop({ keep = false } = {}): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.stop()));
    await this.proxy.stop();
    await this.snapshots.close();
    await this.engines.stop();
    await this.origin.close();
    if (!keep) await rm(this.folder, { recursive: true, force: true });
  }

  anyReplica(): Replica {
    return pick(this.random, this.replicas);
  }

  twoReplicas(): [Replica, Replica] {
    const first = this.anyReplica();
    const others = this.replicas.filter((replica) => replica !== first);
    return [first, pick(this.random, others)];
  }

  anyNode(): ClusterNode {
    return pick(this.random, this.engines.cluster.nodes);
  }

  node(name = ''): ClusterNode {
    const found = this.engines.cluster.nodes.find((one) => one.name === name);
    if (found === undefined) throw new Error(`there is no node ${name}`);
    return found;
  }

  /** Requests a rebuild of the next variant directly from a replica, as soon as none runs, and does not wait for it. */
  async beginRebuild(replica: Replica): Promise<void> {
    this.origin.next();
    // Otherwise an earlier failure could be taken for one of this rebuild.
    await this.engines.redis.del(this.#failureKey);
    const isAccepted = async () => {
      // Variants may be smaller than the one before.
      const response = await fetch(`${replica.url}/rebuild?secret=${REBUILD_SECRET}&force=true`);
      await response.arrayBuffer();
      return response.status === 202;
    };
    await waitFor(isAccepted, `${replica.name} to accept a rebuild`, LOCK_TIMEOUT_MS, POLL_MS);
  }

  /** Waits until no rebuild runs on any replica. */
  async idle(): Promise<void> {
    const isIdle = async () =>
      (await this.engines.redis.exists(this.lockKey)) === 0 &&
      this.replicas.every((replica) => replica.workers.length === 0);
    await waitFor(isIdle, 'the end of the rebuild', REBUILD_TIMEOUT_MS);
  }

  /** Rebuilds from the next variant, as soon as no rebuild runs, and asserts that another snapshot is served. */
  async rebuild(replica = this.anyReplica()): Promise<void> {
    await this.idle();
    const before = await this.servedIndex();
    await this.beginRebuild(replica);
    await this.rebuilt(before);
  }

  /** Asserts that a rebuild that has begun succeeds. @param before the served index before it. */
  async rebuilt(before: string | undefined): Promise<void> {
    await this.idle();
    if ((await this.servedIndex()) === before) {
      throw new Error(`the rebuild failed: ${await this.engines.redis.get(this.#failureKey)}`);
    }
  }

  servedIndex(): Promise<string | undefined> {
    return this.#indexOf(this.alias);
  }

  previousIndex(): Promise<string | undefined> {
    return this.#indexOf(previousAliasOf(this.alias));
  }

  /** Begins a rebuild and waits until it has created its index. @returns the served index before it. */
  async beginLoad(): Promise<string | undefined> {
    const served = await this.servedIndex();
    const indices = async () => {
      const { elasticsearch } = this.engines;
      const found = await elasticsearch.indices.get({ index: `${this.alias}-2*`, features: ['aliases'] });
      return Object.keys(found);
    };
    const known = await indices();
    await this.beginRebuild(this.anyReplica());
    const isCreated = async () => (await indices()).some((one) => !known.includes(one));
    await waitFor(isCreated, 'the new index', LOCK_TIMEOUT_MS);
    return served;
  }

  /** Delays every chunk between the replicas and Elasticsearch while `work` runs. */
  async withLatency(ms: number, work: () => Promise<unknown>): Promise<void> {
    const { elasticsearchLinks } = this.engines;
    for (const link of elasticsearchLinks) link.delayMs = ms;
    try {
      await work();
    } finally {
      for (const link of elasticsearchLinks) link.delayMs = 0;
    }
  }

  /** Runs the command that serves the previous snapshot. */
  async rollBack(): Promise<void> {
    const { cluster, redisServer } = this.engines;
    const env = {
      PATH: process.env['PATH'],
      ELASTICSEARCH_URL: cluster.url,
      REDIS_URL: redisServer.url,
      REGISTRY_SLUG: this.slug,
    };
    await run(process.execPath, ['dist/cli/rollback.js'], { cwd: ROOT, env });
  }

  /** Waits until all replicas are healthy, no rebuild runs, and every index has all its copies. */
  async recovered(): Promise<void> {
    const isHealthy = async () =>
      (await Promise.all(this.replicas.map((replica) => replica.isHealthy()))).every(Boolean);
    await waitFor(isHealthy, 'all replicas to be healthy', RECOVERY_TIMEOUT_MS);
    const isGreen = async () => {
      const { timed_out: late } = await this.engines.elasticsearch.cluster
        .health({ wait_for_nodes: '3', wait_for_status: 'green', timeout: '5s' })
        .catch(() => ({ timed_out: true }));
      return !late;
    };
    await waitFor(isGreen, 'the cluster to be green', RECOVERY_TIMEOUT_MS);
    await this.idle();
  }

  /** Everything that should not be there, after a rebuild that succeeded. */
  async leftovers(): Promise<string[]> {
    const { alias, slug, replicas } = this;
    const { elasticsearch, redis } = this.engines;
    const kept = new Map([
      [await this.servedIndex(), alias],
      [await this.previousIndex(), previousAliasOf(alias)],
    ]);
    const found = await elasticsearch.indices.get({ index: `${slug}*`, features: ['aliases'] });
    const changes = Object.keys(found).filter((index) => isChangesOf(alias, index));
    const indices = Object.keys(found).filter((index) => !kept.has(index) && !changes.includes(index));
    const aliases = Object.entries(found).flatMap(([index, { aliases: own = {} }]) =>
      Object.keys(own).filter((name) => name !== kept.get(index)),
    );
    const keys = (await redis.keys(`${slug}*`)).filter((key) => !KEPT_KEYS.test(key));
    const files = await Promise.all(replicas.map(({ temporaryFolder }) => readdir(temporaryFolder)));
    return [
      ...indices.map((name) => `index ${name}`),
      ...aliases.map((name) => `alias ${name}`),
      ...keys.map((name) => `key ${name}`),
      ...files.flat().map((name) => `file ${name}`),
      ...(changes.length > MOST_CHANGES ? [`${changes.length} indices of changes`] : []),
    ];
  }

  async #indexOf(alias: string): Promise<string | undefined> {
    const found = await this.engines.elasticsearch.indices.getAlias({ name: alias }, { ignore: [404] });
    return Object.keys(found).find((name) => isSnapshotOf(this.alias, name));
  }
}

/** Processes of this soak's replicas that still run, by the environment they were started with. */
export async function processesOf(slug: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const env = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
      return env.includes(`REGISTRY_SLUG=${slug}`) ? [`process ${pid}`] : [];
    }),
  );
  return found.flat();
}
