import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { freePort } from '../../dev/free-port.js';
import { run } from '../../dev/run.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { pick, seededRandom } from '../fixtures/random.js';
import { Oracle } from '../fixtures/search-oracle.js';
import { Replica } from '../soak/replica.js';
import { bundledPackages, datasetFile, toCsv, type DatasetFile } from '../support/datasets.js';
import { ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { linksOf } from '../support/follow-next.js';
import { repeat } from '../support/repeat.js';
import { removeRegistries } from '../support/registries.js';
import { newFolder } from '../support/run-folder.js';
import { environmentOf, newSlug, request, type TestResponse } from '../support/service.js';
import { runCommand } from '../support/spawn-cli.js';
import { waitFor } from '../support/wait-for.js';
import { releasedVersion } from './released-version.js';

/** Version 0.3.0. */
const OLD_COMMIT = 'c7c98047c769c6f4e3474a0bfabaaeda75a600c7';
const GUIDE = new URL('../../docs/upgrades.md', import.meta.url);

/** Loops of reads for each replica, and the least number of reads in all. */
const LOOPS = 4;
const READS = 10_000;

const REBUILD_SECRET = 'rebuild-of-a-test';
const QUERIES = ['lib', 'py', 'redis', 'perl-', 'in', 'a-c'];
const ALL = bundledPackages().slice(0, 4000);
/** Rebuilds alternate between these two datasets. */
const VARIANTS = [ALL, ALL.filter(({ no }) => no % 50 !== 0)];

/** The bodies that a search may have: of one variant or of the other. */
const searches = new Map(
  QUERIES.map((q) => [q, VARIANTS.map((packages) => new Oracle(packages).search(q).slice(0, 100))]),
);

/** Reads in loops, and collects every response that is not of one variant. */
class Readers {
  sent = 0;
  walks = 0;
  readonly failures: string[] = [];
  /** What ends the loops of each replica. */
  readonly #loops = new Map<string, () => Promise<void>>();

  /** Starts reading from a replica. */
  start({ url }: Replica): void {
    const random = seededRandom(this.#loops.size + 1);
    const step = async () => {
      await this.#search(url, pick(random, QUERIES));
      if (random() < 0.02) await this.#walk(url);
    };
    this.#loops.set(url, repeat(LOOPS, step));
  }

  /** Ends the loops of a replica, so that it can be stopped. */
  async leave({ url }: Replica): Promise<void> {
    await this.#loops.get(url)?.();
    this.#loops.delete(url);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#loops.values()].map((end) => end()));
  }

  async #search(url: string, q: string): Promise<void> {
    const answer = await this.#get(`${url}/search?q=${q}&limit=100`);
    const expected = searches.get(q) ?? [];
    if (answer !== undefined && !expected.some((one) => isDeepStrictEqual(answer.body.results, one)))
      this.failures.push(`search ${q}: ${answer.text.slice(0, 200)}`);
  }

  /** Follows `next` to the last page. A snapshot that two flips replaced ends the walk with 410. */
  async #walk(url: string): Promise<void> {
    const found: PackageEntry[] = [];
    let path: string | undefined = '?limit=500';
    while (path !== undefined) {
      const answer = await this.#get(`${url}/browse${path}`, 410);
      if (answer?.status !== 200) return;
      found.push(...(answer.body.results as PackageEntry[]));
      path = linksOf(answer)['next'];
    }
    this.walks++;
    if (!VARIANTS.some((one) => isDeepStrictEqual(found, one)))
      this.failures.push(`a walk found ${found.length} packages`);
  }

  async #get(url: string, accepted = 200): Promise<TestResponse | undefined> {
    this.sent++;
    try {
      const answer = await request(url);
      if ([200, accepted].includes(answer.status)) return answer;
      this.failures.push(`${url}: ${answer.status} ${answer.text.slice(0, 200)}`);
    } catch (error) {
      this.failures.push(`${url}: ${String(error)}`);
    }
    return undefined;
  }
}

describe('An upgrade from 0.3.0', function () {
  this.timeout(120_000);
  // Each step continues where the one before ended.
  this.bail(true);
  const slug = newSlug();
  const readers = new Readers();
  let client: Client;
  let redis: Redis;
  let dataset: DatasetFile;
  let root: string;
  let old: Replica;
  let current: Replica;
  let env: Record<string, string>;
  let variant = 0;

  const indices = async () => Object.keys(await client.indices.get({ index: `${slug}-*` })).toSorted();
  const isOld = (index: string) => !/^(packages|rebuilds)-v2/.test(index.slice(slug.length + 1));
  const snapshotOf = async ({ url }: Replica) =>
    (await request(`${url}/stats`)).headers.get('X-Snapshot') ?? '';
  const next = () => dataset.write(toCsv(VARIANTS[++variant % 2] ?? []));

  async function command(name: string): Promise<void> {
    const { code, stderr } = await runCommand(`cli/${name}`, { ...env, DATASET_URL: dataset.url });
    expect(code, stderr).to.equal(0);
  }

  /** Takes a step with one release, and expects that the other one keeps its indices and its snapshot. */
  async function beside(other: Replica, step: () => Promise<unknown>): Promise<void> {
    const ofOther = async () => (await indices()).filter((index) => isOld(index) === (other === old));
    const before = { indices: await ofOther(), snapshot: await snapshotOf(other) };
    await step();
    expect({ indices: await ofOther(), snapshot: await snapshotOf(other) }).to.deep.equal(before);
  }

  /** Takes a step that makes a replica serve another snapshot, and waits until it does. */
  async function flipped(replica: Replica, step: () => Promise<unknown>): Promise<void> {
    const before = await snapshotOf(replica);
    await step();
    await waitFor(async () => (await snapshotOf(replica)) !== before, 'the flip to be noticed', 60_000);
  }

  async function rebuildOld(): Promise<void> {
    await next();
    await flipped(old, async () => {
      expect((await request(`${old.url}/rebuild?secret=${REBUILD_SECRET}`)).status).to.equal(202);
    });
    const hasEnded = async () => (await redis.exists(`${slug}:rebuild:lock`)) === 0;
    await waitFor(hasEnded, 'its end', 60_000);
  }

  async function rebuildCurrent(): Promise<void> {
    await next();
    await flipped(current, () => command('rebuild'));
  }

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    root = await releasedVersion(OLD_COMMIT);
    const folder = newFolder();
    dataset = await datasetFile(toCsv(ALL));
    env = { ...environmentOf(slug), RATE_LIMIT_POINTS: '0', REBUILD_SECRET };
    client = new Client({ node: env['ELASTICSEARCH_URL'] as string });
    redis = new Redis(env['REDIS_URL'] as string);
    const variables = { ...env, DATASET_URL: dataset.url };
    old = new Replica('old', await freePort(), join(folder, 'old'), variables, root);
    current = new Replica('current', await freePort(), join(folder, 'current'), variables);
    await old.start();
    readers.start(old);
  });

  after(async () => {
    await readers.stop();
    await Promise.all([old.stop(), current.stop()]);
    await removeRegistries([slug]);
    const rest = await indices();
    if (rest.length > 0) await client.indices.delete({ index: rest });
    await client.close();
    redis.disconnect();
    await dataset.remove();
  });

  it('builds a snapshot beside the served one, which 0.3.0 does not notice', () =>
    beside(old, () => command('rebuild')));

  it('serves both releases side by side', async () => {
    await current.start();
    readers.start(current);
    const first = await request(`${old.url}/search?q=lib&limit=5`);
    expect((await request(`${current.url}/search?q=lib&limit=5`)).body).to.deep.equal(first.body);
    expect((await request(`${current.url}/search${linksOf(first)['next']}`)).status).to.equal(410);
    const since = await snapshotOf(old);
    expect((await request(`${current.url}/changes?since=${since}`)).status).to.equal(410);
  });

  for (let turn = 1; turn <= 3; turn++) {
    it(`keeps what this release built during rebuild ${turn} of 0.3.0`, () => beside(current, rebuildOld));
    it(`keeps what 0.3.0 built during rebuild ${turn} of this release`, () => beside(old, rebuildCurrent));
  }

  it('keeps what this release built during a rollback of 0.3.0', () =>
    beside(current, () => {
      const { PATH, HOME } = process.env;
      const options = { cwd: root, env: { PATH, HOME, ...env } };
      return flipped(old, () => run('npm', ['run', '--silent', 'rollback'], options));
    }));

  it('keeps what 0.3.0 built during a rollback of this release', () =>
    beside(old, () => flipped(current, () => command('rollback'))));

  it('goes back by starting 0.3.0 again', async () => {
    await readers.leave(old);
    await old.stop();
    await readers.leave(current);
    await current.stop();
    await old.start();
    readers.start(old);
    await waitFor(() => readers.sent > READS / 2, 'the reads', 60_000);
    await current.start();
    readers.start(current);
  });

  it('deletes what 0.3.0 left by the command of the guide', async () => {
    await readers.leave(old);
    await old.stop();
    const [, script = ''] =
      /```sh\n( *old=.*?)```/s.exec(readFileSync(GUIDE, 'utf8')) ?? expect.fail('no command');
    expect((await indices()).filter(isOld)).not.to.deep.equal([]);
    const kept = (await indices()).filter((index) => !isOld(index));
    const { PATH } = process.env;
    await run('bash', ['-c', script.replaceAll('registry-packages', `${slug}-packages`)], {
      env: { PATH, ELASTICSEARCH_URL: env['ELASTICSEARCH_URL'] },
    });
    expect(await indices()).to.deep.equal(kept);
  });

  it(`answers at least ${READS} reads, none of them wrong`, async () => {
    await waitFor(() => readers.sent >= READS, 'the reads', 120_000);
    await readers.stop();
    console.log(
      `${readers.sent} reads, ${readers.walks} walks to the last page, ${readers.failures.length} failed`,
    );
    expect(readers.failures).to.deep.equal([]);
    expect(readers.walks).to.be.at.least(10);
  });
});
