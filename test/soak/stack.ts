import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, errors } from '@elastic/elasticsearch';
import { Redis } from 'ioredis';
import { pick } from '../../fixtures/random.js';
import { freePort } from '../../src/dev/free-port.js';
import { findPaths, makeFolder } from '../../src/dev/paths.js';
import { startRedisProcess } from '../../src/dev/redis.js';
import { run } from '../../src/dev/run.js';
import type { Service } from '../../src/dev/service.js';
import { aliasOf, previousAliasOf } from '../../src/search/index-names.js';
import { startCluster, type Cluster, type ClusterNode } from '../support/cluster.js';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { waitFor } from '../support/wait-for.js';
import { EngineLink } from '../support/engine-link.js';
import { startHaProxy, type HaProxy } from './haproxy.js';
import { Replica } from './replica.js';
import { Snapshots, type Variant } from './snapshots.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const REPLICAS = 3;
const REBUILD_SECRET = 'rebuild-change-me';
export const BYPASS_SECRET = 'bypass-change-me';

/** Requests per client address and minute: readers stay below, a flood does not. */
export const RATE_LIMIT = 2000;

/** Open connections per replica: useless clients can fill them. */
export const MAX_CONNECTIONS = 300;

/** Variants may be smaller than the one before. */
const FORCED = '&force=true';

/** How long a lock outlives its rebuild (10 s), and a margin, in milliseconds. */
const LOCK_TIMEOUT_MS = 20_000;

/** How long the master may take to apply a new cluster state, in milliseconds. */
const APPLY_TIMEOUT_MS = 5000;

/** How long a rebuild of this dataset may take on a busy machine, in milliseconds. */
const REBUILD_TIMEOUT_MS = 120_000;

/**
 * Niceness of a node while it starts. Elsewhere it has its own processors; here its start would take both, for half a minute,
 * from all others. Afterwards it has the same priority as they have.
 */
const START_NICENESS = 15;

/** How long everything may take to recover after a fault, in milliseconds: a node that starts is the slowest. */
const RECOVERY_TIMEOUT_MS = 180_000;

/** The system under test: HAProxy, three replicas, three Elasticsearch nodes, one Redis, and the dataset's server. */
export class Stack {
  /** How the dataset's server responds; `undefined` serves the current variant. */
  respondWith: RequestListener | undefined;
  readonly alias: string;
  readonly lockKey: string;
  readonly progressKey: string;
  readonly failureKey: string;
  #served: Variant;

  private constructor(
    readonly slug: string,
    readonly folder: string,
    private readonly variants: readonly Variant[],
    /** A state with other names. */
    readonly renamed: Variant,
    readonly random: () => number,
    readonly cluster: Cluster,
    readonly redisServer: Service,
    /** The soak's own connections to the engines, not through links. */
    readonly elasticsearch: Client,
    readonly redis: Redis,
    readonly elasticsearchLinks: readonly EngineLink[],
    readonly redisLink: EngineLink,
    private readonly origin: DatasetServer,
    readonly replicas: readonly Replica[],
    readonly proxy: HaProxy,
    readonly snapshots: Snapshots,
  ) {
    this.#served = variants[0] as Variant;
    this.alias = aliasOf(slug);
    this.lockKey = `${slug}:rebuild:lock`;
    this.progressKey = `${slug}:rebuild:progress`;
    this.failureKey = `${slug}:rebuild:last-failure`;
  }

  /** Starts everything and loads the first two snapshots. */
  static async start(variants: readonly Variant[], renamed: Variant, random: () => number): Promise<Stack> {
    const paths = findPaths(process.env);
    const folder = makeFolder(await mkdtemp(join(tmpdir(), 'package-registry-search-soak-')), paths.runAs);
    const log = (line: string) => console.log(line);
    const slug = `soak${randomBytes(4).toString('hex')}`;
    await run('npm', ['run', '--silent', 'build:worker'], { cwd: ROOT });
    const redisServer = await startRedisProcess(
      paths,
      join(folder, 'redis'),
      undefined,
      process.env,
      log,
      new AbortController().signal,
    );
    const isRoot = process.getuid?.() === 0;
    const cluster = await startCluster(
      ['master', 'master', 'master'],
      isRoot ? { startNiceness: START_NICENESS } : {},
    );
    const nodes = cluster.nodes.map(({ url }) => url);
    const elasticsearchLinks = await Promise.all(nodes.map((node) => EngineLink.start(node)));
    const redisLink = await EngineLink.start(redisServer.url);
    const redis = new Redis(redisServer.url);
    // Faults kill Redis; the connection is made again.
    redis.on('error', () => undefined);
    let stack: Stack | undefined = undefined;
    const origin = await datasetServer((request, response) => stack?.respond(request, response));
    const env = {
      ELASTICSEARCH_URL: elasticsearchLinks.map(({ url }) => url).join(','),
      REDIS_URL: redisLink.url,
      REGISTRY_SLUG: slug,
      DATASET_URL: origin.url,
      DATASET_DOWNLOAD_TIMEOUT_SECONDS: '40',
      INDEX_REPLICAS: '1',
      TRUSTED_PROXIES: '127.0.0.1',
      RATE_LIMIT_POINTS: String(RATE_LIMIT),
      MAX_CONNECTIONS: String(MAX_CONNECTIONS),
      CACHE_MAX_BYTES: String(16 * 2 ** 20),
      REBUILD_SECRET,
      BYPASS_SECRET,
    };
    const replicas = [];
    for (let i = 1; i <= REPLICAS; i++) {
      const name = `replica-${i}`;
      replicas.push(new Replica(name, await freePort(), makeFolder(join(folder, name), undefined), env));
    }
    const proxy = await startHaProxy(
      folder,
      replicas.map(({ port }) => port),
    );
    stack = new Stack(
      slug,
      folder,
      variants,
      renamed,
      random,
      cluster,
      redisServer,
      new Client({ nodes, requestTimeout: 10_000, maxRetries: 3 }),
      redis,
      elasticsearchLinks,
      redisLink,
      origin,
      replicas,
      proxy,
      new Snapshots(nodes, aliasOf(slug), [...variants, renamed]),
    );
    for (const replica of replicas) await replica.start();
    await stack.recovered();
    await stack.rebuild();
    return stack;
  }

  /** Stops everything and deletes its files. @param keep keeps the logs. */
  async stop({ keep = false } = {}): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.stop()));
    await this.proxy.stop();
    await Promise.all([...this.elasticsearchLinks, this.redisLink].map((link) => link.stop()));
    await this.snapshots.close();
    await this.elasticsearch.close();
    this.redis.disconnect();
    await this.redisServer.stop();
    await this.cluster.stop();
    await this.origin.close();
    if (!keep) await rm(this.folder, { recursive: true, force: true });
  }

  /** The dataset that the origin serves. */
  get variant(): Variant {
    return this.#served;
  }

  /** Lets the origin serve the next state of the dataset. */
  nextVariant(): void {
    this.#served = this.variants[(this.variants.indexOf(this.#served) + 1) % this.variants.length] as Variant;
  }

  private readonly respond: RequestListener = (request, response) => {
    if (this.respondWith !== undefined) this.respondWith(request, response);
    else response.end(this.variant.csv);
  };

  anyReplica(): Replica {
    return pick(this.random, this.replicas);
  }

  twoReplicas(): [Replica, Replica] {
    const first = this.anyReplica();
    return [
      first,
      pick(
        this.random,
        this.replicas.filter((replica) => replica !== first),
      ),
    ];
  }

  anyNode(): ClusterNode {
    return pick(this.random, this.cluster.nodes);
  }

  node(name: string): ClusterNode {
    const found = this.cluster.nodes.find((one) => one.name === name);
    if (found === undefined) throw new Error(`there is no node ${name}`);
    return found;
  }

  /** Requests a rebuild of the next variant directly from a replica, as soon as none runs, and does not wait for it. */
  async beginRebuild(replica: Replica, params = FORCED): Promise<void> {
    this.nextVariant();
    await this.#accepted(replica, params);
  }

  async #accepted(replica: Replica, params: string): Promise<void> {
    // Otherwise an earlier failure could be taken for one of this rebuild.
    await this.redis.del(this.failureKey);
    const accepted = async () => (await this.askRebuild(replica, params)) === 202;
    await waitFor(accepted, `${replica.name} to accept a rebuild`, LOCK_TIMEOUT_MS);
  }

  /** Requests a rebuild. @returns the status. */
  async askRebuild(replica: Replica, params = ''): Promise<number> {
    const response = await fetch(`${replica.url}/rebuild?secret=${REBUILD_SECRET}${params}`);
    await response.arrayBuffer();
    // Another rebuild is running, or an engine is down. Callers may ask again at once.
    if (response.status === 503) await pause(250);
    return response.status;
  }

  /** Waits until no rebuild runs on any replica. */
  async idle(): Promise<void> {
    const isIdle = async () =>
      (await this.redis.exists(this.lockKey)) === 0 &&
      this.replicas.every((replica) => replica.workers.length === 0);
    await waitFor(isIdle, 'the end of the rebuild', REBUILD_TIMEOUT_MS);
  }

  /** Rebuilds and asserts that another snapshot is served. */
  async rebuild(replica = this.anyReplica()): Promise<void> {
    this.nextVariant();
    await this.#rebuildFromOrigin(replica);
  }

  /** The same from a dataset that is not the next one. */
  async rebuildFrom(variant: Variant): Promise<void> {
    this.#served = variant;
    await this.#rebuildFromOrigin(this.anyReplica());
  }

  async #rebuildFromOrigin(replica: Replica): Promise<void> {
    const before = await this.servedIndex();
    await this.#accepted(replica, FORCED);
    await this.idle();
    if ((await this.servedIndex()) === before)
      throw new Error(`the rebuild failed: ${await this.lastFailure()}`);
  }

  /** Asserts that a rebuild fails and that the same snapshot is served. @param reason expected in its report. */
  async rebuildFails(reason: RegExp, params = '', replica = this.anyReplica()): Promise<void> {
    const before = await this.servedIndex();
    await this.beginRebuild(replica, params);
    await this.idle();
    await this.expectFailed(before, reason);
  }

  /** Asserts that the last rebuild failed for this reason, and that `before` is still served. */
  async expectFailed(before: string | undefined, reason: RegExp): Promise<void> {
    const failure = await this.lastFailure();
    if (!reason.test(failure)) throw new Error(`expected a failed rebuild (${String(reason)}): ${failure}`);
    if ((await this.servedIndex()) !== before) throw new Error('the failed rebuild changed what is served');
  }

  async lastFailure(): Promise<string> {
    return (await this.redis.get(this.failureKey)) ?? 'none';
  }

  async servedIndex(): Promise<string | undefined> {
    return this.#indexOf(this.alias);
  }

  async previousIndex(): Promise<string | undefined> {
    return this.#indexOf(previousAliasOf(this.alias));
  }

  async indices(): Promise<string[]> {
    return Object.keys(
      await this.elasticsearch.indices.get({ index: `${this.alias}-2*`, features: ['aliases'] }),
    ).sort();
  }

  /** Waits until a rebuild has created its index. @param known the indices before it. */
  async newIndex(known: readonly string[]): Promise<string> {
    let index: string | undefined;
    await waitFor(
      async () => (index = (await this.indices()).find((one) => !known.includes(one))) !== undefined,
      'the new index',
      LOCK_TIMEOUT_MS,
    );
    return index as string;
  }

  /**
   * Changes or deletes the index of a rebuild that has just begun. The node that reported it may have learned of it
   * before the master has applied its own decision, and responds with 404 until then.
   */
  async onNewIndex(known: readonly string[], change: (index: string) => Promise<unknown>): Promise<void> {
    const index = await this.newIndex(known);
    const isDone = () =>
      change(index).then(
        () => true,
        (error: unknown) => {
          if (error instanceof errors.ResponseError && error.statusCode === 404) return false;
          throw error;
        },
      );
    await waitFor(isDone, `the master to know ${index}`, APPLY_TIMEOUT_MS);
  }

  /** Delays every chunk between the replicas and Elasticsearch while `work` runs. */
  async withLatency(ms: number, work: () => Promise<unknown>): Promise<void> {
    for (const link of this.elasticsearchLinks) link.delayMs = ms;
    try {
      await work();
    } finally {
      for (const link of this.elasticsearchLinks) link.delayMs = 0;
    }
  }

  /** Runs a command of the service. @returns its exit code. */
  async command(script: string, args: readonly string[] = [], slug = this.slug): Promise<number> {
    const env = {
      PATH: process.env['PATH'],
      ELASTICSEARCH_URL: this.cluster.url,
      REDIS_URL: this.redisServer.url,
      REGISTRY_SLUG: slug,
      INDEX_REPLICAS: '1',
    };
    return run(process.execPath, [script, ...args], { cwd: ROOT, env }).then(
      () => 0,
      (error: unknown) => (error as { code?: number }).code ?? -1,
    );
  }

  /** Waits until all replicas are healthy, no rebuild runs, and every index has all its copies. */
  async recovered(): Promise<void> {
    const isHealthy = async () =>
      (await Promise.all(this.replicas.map((replica) => replica.isHealthy()))).every(Boolean);
    await waitFor(isHealthy, 'all replicas to be healthy', RECOVERY_TIMEOUT_MS);
    const isGreen = async () => {
      const { timed_out: late } = await this.elasticsearch.cluster
        .health({ wait_for_nodes: '3', wait_for_status: 'green', timeout: '5s' })
        .catch(() => ({ timed_out: true }));
      return !late;
    };
    await waitFor(isGreen, 'the cluster to be green', RECOVERY_TIMEOUT_MS);
    await this.idle();
  }

  /** Everything that should not be there, after a rebuild that succeeded. */
  async leftovers(): Promise<string[]> {
    const served = await this.servedIndex();
    const previous = await this.previousIndex();
    const kept = [served, previous];
    const found = await this.elasticsearch.indices.get({ index: `${this.slug}*`, features: ['aliases'] });
    const changes = Object.keys(found).filter((index) => index.startsWith(`${this.alias}-changes-`));
    const indices = Object.keys(found).filter((index) => !kept.includes(index) && !changes.includes(index));
    const aliases = Object.entries(found).flatMap(([index, { aliases: own }]) =>
      Object.keys(own ?? {})
        .filter((alias) => !(alias === this.alias && index === served))
        .filter((alias) => !(alias === previousAliasOf(this.alias) && index === previous)),
    );
    const keys = (await this.redis.keys(`${this.slug}*`)).filter((key) => !key.includes(':limit:'));
    const files = (
      await Promise.all(this.replicas.map(({ temporaryFolder }) => readdir(temporaryFolder)))
    ).flat();
    // The changes that lead from the 30 snapshots before the served one.
    const excess = changes.length > 31 ? [`${changes.length} indices of changes`] : [];
    return [
      ...indices.map((name) => `index ${name}`),
      ...aliases.map((name) => `alias ${name}`),
      ...keys.map((name) => `key ${name}`),
      ...files.map((name) => `file ${name}`),
      ...excess,
    ];
  }

  async #indexOf(alias: string): Promise<string | undefined> {
    const found = await this.elasticsearch.indices.getAlias({ name: alias }, { ignore: [404] });
    return Object.keys(found).find((name) => name.startsWith(this.alias));
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
