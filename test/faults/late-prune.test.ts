import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { bundledPackages, packagesNamed } from '../support/datasets.js';
import { EngineProxy } from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { REBUILD, REBUILD_SECRET, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { flip } from '../../src/rebuild/aliases.js';
import { discard, listBuilds } from '../../src/rebuild/prune.js';
import { createIndex } from '../../src/rebuild/indices.js';
import { newIndexName, previousAliasOf } from '../../src/search/index-names.js';

/** The indices behind the alias and the alias of the previous generation. */
async function served({ elasticsearch, alias }: Service): Promise<(string | undefined)[]> {
  const builds = [...(await listBuilds(elasticsearch, alias, new AbortController().signal))];
  return [alias, previousAliasOf(alias)].map((name) => builds.find(([, names]) => names.includes(name))?.[0]);
}

describe('A process that is suspended until its lock expires', function () {
  this.timeout(120_000);
  const suite = useService(
    () => bundledPackages().slice(0, 2000),
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [2000]);
  let proxy: EngineProxy;

  before(async () => {
    proxy = await EngineProxy.start((await engines()).elasticsearch.url);
  });
  after(() => proxy.close());

  /** Starts a process on the suite's registry that reaches Elasticsearch through the proxy. */
  async function start(script: string): Promise<SpawnedCli> {
    const { redis } = await engines();
    return new SpawnedCli(script, {
      ELASTICSEARCH_URL: proxy.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: suite.service.slug,
      DATASET_URL: suite.dataset.url,
      REBUILD_SECRET,
    });
  }

  /** Deletes the lock of a suspended process. Other tests cover its expiry. */
  async function expireLock(): Promise<void> {
    const redis = new Redis((await engines()).redis.url);
    const expired = await redis.del(`${suite.service.slug}:rebuild:lock`);
    redis.disconnect();
    expect(expired).to.equal(1);
  }

  const isAliasChange = (_method: string, path: string) => path.startsWith('/_aliases');

  it('does not delete a newer generation if it resumes between flip and prune', async () => {
    const flipped = proxy.hold('after', isAliasChange);
    const sleeper = await start('src/cli/rebuild.ts');
    await flipped.arrived;
    sleeper.signal('SIGSTOP');
    const [ofSleeper] = await served(suite.service);
    await expireLock();
    expect((await suite.service.rebuild()).status).to.equal(202);
    const [current, previous] = await served(suite.service);
    expect(previous).to.equal(ofSleeper);

    sleeper.signal('SIGCONT');
    flipped.release();
    expect(await sleeper.exit(), sleeper.stderr).to.equal(0);
    expect(await served(suite.service)).to.deep.equal([current, previous]);
    expect(await suite.service.indices()).to.have.members([current, previous]);
    expect((await suite.service.get('/search?q=lib')).status).to.equal(200);
  });

  it('does not replace a newer generation if it resumes before a rollback', async () => {
    const asked = proxy.hold('before', isAliasChange);
    const sleeper = await start('src/cli/rollback.ts');
    await asked.arrived;
    sleeper.signal('SIGSTOP');
    await expireLock();
    expect((await suite.service.rebuild()).status).to.equal(202);
    const afterwards = await served(suite.service);

    sleeper.signal('SIGCONT');
    asked.release();
    expect(await sleeper.exit()).to.equal(1);
    expect(await served(suite.service)).to.deep.equal(afterwards);
  });

  reading.itNoticesNothing();
});

describe('A discarded build', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['alpha', 'beta']));
  let proxy: EngineProxy;

  before(async () => {
    proxy = await EngineProxy.start((await engines()).elasticsearch.url);
  });
  after(() => proxy.close());

  /** Creates an empty build. */
  async function build(): Promise<string> {
    const { alias, elasticsearch, server } = suite.service;
    const index = newIndexName(alias, new Date());
    const meta = server.generations.current?.meta;
    if (meta === undefined) throw new Error('no generation is served');
    await createIndex(elasticsearch, 'packages', { index, shards: 1, meta }, new AbortController().signal);
    return index;
  }

  it('cannot go live by a late flip', async () => {
    const { alias, elasticsearch } = suite.service;
    const index = await build();
    const [current] = await served(suite.service);
    const viaProxy = new Client({ node: proxy.url });
    const deletion = proxy.hold('before', (method) => method === 'DELETE');
    const discarded = discard(viaProxy, index);
    await deletion.arrived;
    const late = await flip(elasticsearch, alias, current, index).catch((error: unknown) => error);
    deletion.release();
    await discarded;
    await viaProxy.close();
    expect(late).to.be.instanceOf(Error);
    expect((await served(suite.service))[0]).to.equal(current);
    expect(await suite.service.indices()).to.deep.equal([current]);
  });

  it('is kept if it is live because only the response to its flip was lost', async () => {
    const { alias, elasticsearch } = suite.service;
    const [current] = await served(suite.service);
    const index = await build();
    await flip(elasticsearch, alias, current, index);
    await discard(elasticsearch, index);
    expect(await served(suite.service)).to.deep.equal([index, current]);
    // Replaces the empty build.
    await suite.service.rebuild('&force=true');
  });

  it('is never the previous generation, even if the current index was deleted by hand', async () => {
    const { elasticsearch, server } = suite.service;
    await suite.service.rebuild();
    const [current = '', previous] = await served(suite.service);
    await elasticsearch.indices.delete({ index: current });
    // The next check finds no index, and a cold start builds one.
    await waitFor(() => server.rebuilds.progress !== undefined, 'a cold start');
    await suite.service.idle();
    const [rebuilt, kept] = await served(suite.service);
    expect(rebuilt).not.to.equal(current);
    expect(kept).to.equal(previous);
    expect((await suite.service.get('/search?q=alpha')).body.count).to.equal(1);
    expect((await suite.service.get(REBUILD)).status).to.equal(202);
    await suite.service.idle();
  });
});
