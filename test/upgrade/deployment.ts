import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, type estypes } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { applyChanges, changesBetween, type ChangeResult } from '../fixtures/changes-oracle.js';
import { seededRandom } from '../fixtures/random.js';
import { freePort } from '../../dev/free-port.js';
import { run } from '../../dev/run.js';
import { aliasOf, snapshotIdOf } from '../../src/snapshot/index-names.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { startHaProxy, type HaProxy } from '../soak/haproxy.js';
import { Origin } from '../soak/origin.js';
import { Replica } from '../soak/replica.js';
import { makeVariants, Snapshots, Variant } from '../soak/snapshots.js';
import { engines } from '../support/engines.js';
import { followNext } from '../support/follow-next.js';
import { removeRegistries } from '../support/registries.js';
import { environmentOf, newSlug, request } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { asInPreviousVersion } from './reads.js';
import { releasedVersion } from './released-version.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Version 0.2.0. */
const OLD_COMMIT = 'ce733e097cec12aa56b2ca874b7c106af7ff00d7';

const REBUILD_SECRET = 'rebuild-of-a-test';
export const BYPASS_SECRET = 'bypass-of-a-test';

/** HAProxy checks every second whether a replica runs. */
const PROXY_NOTICES_MS = 2500;

/** Enough for three more refreshes of each replica, in milliseconds. */
const REFRESHES_MS = 12_000;

const REBUILD_TIMEOUT_MS = 120_000;

/** 0.2.0, and this version. */
export type Version = 'old' | 'new';

/** A snapshot of the history that clients saw. */
interface Built {
  variant: Variant;
  /** Earlier snapshots of its chain, latest first. */
  ancestors: readonly string[];
}

/** Two replicas behind HAProxy, each of which runs one of the two versions, on one Elasticsearch and one Redis. */
export class Deployment {
  readonly #built = new Map<string, Built>();
  /** Ids of the current and the previous snapshot. */
  #current = '';
  #previous = '';
  readonly #client = new Client({ node: engines().elasticsearch.url });
  readonly #redis = new Redis(engines().redis.url);

  private constructor(
    readonly slug: string,
    readonly snapshots: Snapshots,
    readonly proxy: HaProxy,
    private readonly folder: string,
    private readonly origin: Origin,
    /** For each place behind the proxy, a replica of each version, of which one runs. */
    private readonly places: readonly Record<Version, Replica>[],
    private readonly roots: Record<Version, string>,
    /** Which one runs at each place. */
    private readonly versions: Version[],
  ) {}

  /** Starts two replicas of 0.2.0, which load the first snapshot, and builds a second one. */
  static async start(): Promise<Deployment> {
    const roots = { old: await releasedVersion(OLD_COMMIT), new: ROOT };
    const folder = await mkdtemp(join(tmpdir(), 'package-registry-search-upgrade-'));
    const variants = makeVariants(seededRandom(43)).map(withWeights);
    const origin = await Origin.start(variants);
    const slug = newSlug();
    const env = {
      ...environmentOf(slug),
      DATASET_URL: origin.url,
      TRUSTED_PROXIES: '127.0.0.1',
      RATE_LIMIT_POINTS: '2000',
      REBUILD_SECRET,
      BYPASS_SECRET,
    };
    const places: Record<Version, Replica>[] = [];
    for (const place of [1, 2]) {
      const port = await freePort();
      const replica = (version: Version) =>
        new Replica(`${version}-${place}`, port, join(folder, `${version}-${place}`), env, roots[version]);
      places.push({ old: replica('old'), new: replica('new') });
    }
    const proxy = await startHaProxy(
      folder,
      places.map(({ old }) => old.port),
    );
    const nodes = [engines().elasticsearch.url];
    const snapshots = new Snapshots(nodes, aliasOf(slug), variants, asBuilt(variants));
    const versions: Version[] = ['old', 'old'];
    const deployment = new Deployment(slug, snapshots, proxy, folder, origin, places, roots, versions);
    for (const { old } of places) await old.start();
    await deployment.#note();
    await deployment.rebuild('old');
    await pause(PROXY_NOTICES_MS);
    return deployment;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running().map((replica) => replica.stop()));
    await this.proxy.stop();
    await this.origin.close();
    await this.snapshots.close();
    await this.#client.close();
    this.#redis.disconnect();
    await removeRegistries([this.slug]);
    await rm(this.folder, { recursive: true });
  }

  /** Replaces the replica at one place by one of this version. @param changes of its environment. */
  async roll(place: number, version: Version, changes: Record<string, string> = {}): Promise<void> {
    await this.#replica(place).stop();
    this.versions[place] = version;
    await this.#replica(place).start(changes);
    await pause(PROXY_NOTICES_MS);
  }

  /** Lets a replica of this version build the next state of the dataset, while the other replica refuses to build. */
  async rebuild(by: Version): Promise<void> {
    const at = this.versions.indexOf(by);
    this.origin.next();
    const ask = (place: number) => request(`${this.#replica(place).url}/rebuild?secret=${REBUILD_SECRET}`);
    expect((await ask(at)).status).to.equal(202);
    const { status, body } = await ask(1 - at);
    expect({ status, code: body.code }).to.deep.equal({ status: 503, code: 'rebuilding' });
    await this.#idle();
    await this.#note();
  }

  /**
   * Lets replicas of both versions refresh at an interval, with a dataset that has not changed since 0.2.0 built the current
   * snapshot. This version builds it once more, to record its settings, and 0.2.0 accepts the result.
   */
  async refresh(): Promise<void> {
    const interval = { REBUILD_INTERVAL_SECONDS: '4' };
    await this.roll(0, 'new', interval);
    await this.roll(1, 'old', interval);
    const isRefreshed = async () => (await this.#served()) !== this.#current;
    await waitFor(isRefreshed, 'the refresh', REBUILD_TIMEOUT_MS);
    await pause(REFRESHES_MS);
    await this.roll(0, 'new');
    await this.roll(1, 'old');
    const before = this.#current;
    await this.#note();
    const { ancestors } = (await this.meta())['lineage'] as { ancestors: string[] };
    expect(ancestors[0], 'snapshots between').to.equal(before);
  }

  /** Waits until no rebuild runs. */
  async #idle(): Promise<void> {
    const isIdle = async () => (await this.#redis.exists(`${this.slug}:rebuild:lock`)) === 0;
    await waitFor(isIdle, 'the end of the rebuild', REBUILD_TIMEOUT_MS);
  }

  /** Goes back to the previous snapshot with `npm run rollback` of this version. */
  async rollBack(by: Version): Promise<void> {
    const { PATH, HOME } = process.env;
    const env = { PATH, HOME, ...environmentOf(this.slug) };
    await run('npm', ['run', '--silent', 'rollback'], { cwd: this.roots[by], env });
    [this.#current, this.#previous] = [this.#previous, this.#current];
    await this.#agree();
  }

  /** The `_meta` of the served snapshot. */
  async meta(): Promise<estypes.Metadata> {
    const found = await this.#client.indices.getMapping({ index: aliasOf(this.slug) });
    return Object.values(found)[0]?.mappings._meta ?? {};
  }

  /** The address of a replica that runs this version. */
  url(version: Version): string {
    return this.#replica(this.versions.indexOf(version)).url;
  }

  /** The packages of the served snapshot. */
  packages(): readonly PackageEntry[] {
    return this.#built.get(this.#current)?.variant.byNumber ?? [];
  }

  /** Waits until both replicas serve the current snapshot. */
  async #agree(): Promise<void> {
    for (const { url } of this.#running()) {
      const servesIt = async () =>
        (await request(`${url}/stats`)).headers.get('X-Snapshot') === this.#current;
      await waitFor(servesIt, `${url} to serve ${this.#current}`);
    }
  }

  /** Compares `/changes` of both replicas, since every snapshot, with a loop over all packages. */
  async checkChanges(): Promise<void> {
    const packagesOf = (id: string) => this.#built.get(id)?.variant.byNumber ?? [];
    const { ancestors = [] } = this.#built.get(this.#current) ?? {};
    const chain = [this.#current, ...ancestors];
    for (const [place, { url }] of this.#running().entries()) {
      const service = { get: (path: string) => request(url + path) };
      for (const since of this.#built.keys()) {
        const path = `/changes?since=${since}&limit=100`;
        const at = chain.indexOf(since);
        if (at === -1) {
          expect((await service.get(path)).status, path).to.equal(410);
          continue;
        }
        const pages = await followNext(service, path);
        const changes = pages.flatMap(({ body }) => body.results as ChangeResult[]);
        const way = chain.slice(0, at + 1).reverse();
        const expected = changesBetween(way.map(packagesOf));
        expect(changes).to.deep.equal(
          this.versions[place] === 'new' ? expected : expected.map(asInPreviousVersion),
        );
        const held = applyChanges(packagesOf(since).map(withoutWeight), changes);
        const now = packagesOf(this.#current).map(withoutWeight);
        expect(held).to.deep.equal(new Map(now.map((entry) => [entry.name, entry])));
      }
    }
  }

  /** Records that another snapshot is served. */
  async #note(): Promise<void> {
    const id = await this.#served();
    expect(id).not.to.equal(this.#current);
    await this.snapshots.look();
    const variant = this.snapshots.get(id) ?? expect.fail(`${id} was built from no known dataset`);
    const before = this.#built.get(this.#current);
    const ancestors = before === undefined ? [] : [this.#current, ...before.ancestors];
    this.#built.set(id, { variant, ancestors });
    this.#previous = this.#current;
    this.#current = id;
    await this.#agree();
  }

  /** The id of the snapshot that the alias points to. */
  async #served(): Promise<string> {
    const found = await this.#client.indices.getAlias({ name: aliasOf(this.slug) });
    return snapshotIdOf(Object.keys(found)[0] ?? '');
  }

  #replica(place: number): Replica {
    const replicas = this.places[place] as Record<Version, Replica>;
    return replicas[this.versions[place] as Version];
  }

  #running(): Replica[] {
    return this.places.map((_, place) => this.#replica(place));
  }
}

/** The same packages with a weight each. */
function withWeights({ byNumber }: Variant): Variant {
  return new Variant(byNumber.map((entry) => ({ ...entry, weight: (entry.no * 7919) % 100_000 })));
}

function withoutWeight({ no, name, version, url }: PackageEntry): PackageEntry {
  return { no, name, version, url };
}

/** 0.2.0 ignores the column of weights. */
function asBuilt(variants: readonly Variant[]): (variant: Variant, meta: estypes.Metadata) => Variant {
  const withoutWeights = new Map(
    variants.map((variant) => [variant, new Variant(variant.byNumber.map(withoutWeight))]),
  );
  return (variant, meta) =>
    meta['has_weights'] === true ? variant : (withoutWeights.get(variant) ?? variant);
}
