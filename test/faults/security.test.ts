import { rejects } from 'node:assert/strict';
import { Client, errors } from '@elastic/elasticsearch';
import { expect } from 'chai';
import type { Service } from '../../dev/service.js';
import { builderRole } from '../../src/cli/key-roles.js';
import {
  aliasOf,
  changesIndexOf,
  newIndexName,
  previousAliasOf,
  rebuildsIndexOf,
  snapshotIdOf,
} from '../../src/snapshot/index-names.js';
import { checkElasticsearch } from '../../src/elasticsearch/connection-check.js';
import {
  ADMINISTRATOR,
  ADMINISTRATOR_AUTH,
  ADMINISTRATOR_ENV,
  makeKeys,
  readKeys,
  type Keys,
} from '../support/api-keys.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { EngineProxy, isBulk } from '../support/engine-proxy.js';
import { ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { keepSecret } from '../support/secret-scanner.js';
import { scrape } from '../support/metrics.js';
import { isolatedNodes, type IsolatedNodes } from '../support/isolated-nodes.js';
import { spawnReplica } from '../support/replicas.js';
import { runCommand, SpawnedCli } from '../support/spawn-cli.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { environmentOf, newSlug, REBUILD, request, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const PACKAGES = bundledPackages().slice(0, 500);

/** A request to try: method, path, and optional body. */
type Attempt = [method: string, path: string, body?: object];

describe('An Elasticsearch with security', function () {
  this.timeout(120_000);
  const slug = newSlug();
  const alias = aliasOf(slug);
  /** Indices of registries with similar names, and indices that are not snapshots. */
  const others = [
    newIndexName(aliasOf(`${alias}-b`), new Date()),
    newIndexName(aliasOf(newSlug()), new Date()),
    `${alias}x`,
    `${alias}-notes`,
    `${newIndexName(alias, new Date())}-copy`,
    `${alias}-changes-mine`,
    `${newIndexName(`${alias}-changes`, new Date())}-copy`,
    changesIndexOf(aliasOf(`${alias}-b`), '20260101t000000z-0123abcd'),
    rebuildsIndexOf(`${slug}-b`),
    `${rebuildsIndexOf(slug)}-mine`,
  ];
  let nodes: IsolatedNodes;
  let engine: Service;
  let administrator: Client;
  let keys: Keys;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    nodes = await isolatedNodes();
    engine = await nodes.start('secured', { administrator: ADMINISTRATOR });
    administrator = new Client({ node: engine.url, auth: ADMINISTRATOR_AUTH });
    for (const index of others) {
      await administrator.index({ index, document: { name: 'secret' }, refresh: true });
    }
    keys = await makeKeys(slug, engine.url, ['--expiration', '30d']);
  });
  const suite = useService(
    () => PACKAGES,
    () => ({ ELASTICSEARCH_URL: engine.url, METRICS_PORT: '0', ...keys, ...UNCACHED }),
    { slug, auth: ADMINISTRATOR_AUTH },
  );
  const reading = useBackgroundReader(suite, [PACKAGES.length]);
  // There is a previous snapshot.
  before(() => suite.publish(PACKAGES));
  after(async () => {
    await administrator.close();
    await nodes.stop();
  });

  const runKeys = (args: string[] = [], env: Record<string, string> = {}) =>
    runCommand('cli/keys', { ...environment(), ...ADMINISTRATOR_ENV, ...env }, args);

  /** Variables of other processes on the same registry. */
  const environment = () => ({ ...environmentOf(slug), ELASTICSEARCH_URL: engine.url });

  /** Calls `use` with a server on the same registry in a child process. @returns it, after its end. */
  async function withServer(
    env: Record<string, string>,
    use: (url: string, program: SpawnedCli) => Promise<void>,
  ): Promise<SpawnedCli> {
    const program = spawnReplica(suite, { ELASTICSEARCH_URL: engine.url, ...env });
    try {
      await use(await program.url(), program);
    } finally {
      await program.stop();
    }
    return program;
  }

  async function served(name = alias): Promise<string> {
    // Not by `getAlias`, which fails if an index loses its loading alias meanwhile.
    return Object.keys(await administrator.indices.get({ index: name, features: ['aliases'] }))[0] ?? '';
  }

  /** All indices and the number of documents, to detect changes. */
  async function everything(): Promise<unknown> {
    const indices = await administrator.indices.get({ index: '*' });
    const { count } = await administrator.count({ index: '*' });
    return { indices, count };
  }

  /** The statuses of attempts with a key. */
  async function statuses(apiKey: string, attempts: Attempt[]): Promise<Record<string, number>> {
    const client = new Client({ node: engine.url, auth: { apiKey }, maxRetries: 0 });
    const got: Record<string, number> = {};
    for (const [method, path, body] of attempts) {
      got[`${method} ${path}`] = await client.transport.request({ method, path, ...(body && { body }) }).then(
        () => 200,
        (error: unknown) => (error instanceof errors.ResponseError ? (error.statusCode ?? 0) : 0),
      );
    }
    await client.close();
    return got;
  }

  async function expectRefused(apiKey: string, attempts: Attempt[]): Promise<void> {
    const before = await everything();
    const allowed = Object.entries(await statuses(apiKey, attempts)).filter(([, status]) => status !== 403);
    expect(allowed).to.deep.equal([]);
    expect(await everything()).to.deep.equal(before);
  }

  const ofCluster: Attempt[] = [
    ['GET', '/'],
    ['GET', '/_cluster/health'],
    ['GET', '/_cluster/state'],
    ['PUT', '/_cluster/settings', { persistent: { 'indices.recovery.max_bytes_per_sec': '1mb' } }],
    ['POST', '/_cluster/reroute'],
    ['GET', '/_nodes'],
    ['GET', '/_cat/nodes'],
    ['GET', '/_tasks'],
    ['GET', '/_snapshot'],
    ['PUT', '/_index_template/mine', { index_patterns: ['mine-*'] }],
    ['PUT', '/_ingest/pipeline/mine', { processors: [] }],
    ['PUT', '/_scripts/mine', { script: { lang: 'painless', source: '1' } }],
    ['GET', '/_security/user'],
    ['GET', '/_security/role'],
    ['GET', '/_security/api_key'],
    ['PUT', '/_security/role/mine', { cluster: ['all'] }],
    ['POST', '/_security/user/mine', { password: 'change-me', roles: ['superuser'] }],
    ['POST', '/_security/api_key', { name: 'mine' }],
    ['DELETE', '/_security/api_key', { name: `${alias}-builder` }],
  ];

  /** Ways to change an index. */
  function changesOf(index: string): Attempt[] {
    return [
      ['POST', `/${index}/_doc`, { name: 'mine' }],
      ['PUT', `/${index}/_doc/1`, { name: 'mine' }],
      ['POST', `/${index}/_update/1`, { doc: { name: 'mine' } }],
      ['DELETE', `/${index}/_doc/1`],
      ['POST', `/${index}/_delete_by_query`, { query: { match_all: {} } }],
      ['POST', `/${index}/_update_by_query`],
      ['DELETE', `/${index}`],
      ['PUT', `/${index}/_settings`, { index: { number_of_replicas: 2 } }],
      ['PUT', `/${index}/_mapping`, { properties: { mine: { type: 'keyword' } } }],
      ['PUT', `/${index}/_alias/${alias}`],
      ['PUT', `/${index}/_block/read`],
      ['POST', `/${index}/_close`],
      ['POST', `/${index}/_refresh`],
      ['POST', `/${index}/_forcemerge`],
      ['POST', `/_aliases`, { actions: [{ add: { index, alias: `${alias}-previous` } }] }],
      ['POST', `/_aliases`, { actions: [{ remove_index: { index } }] }],
    ];
  }

  function readsOf(index: string): Attempt[] {
    return [
      ['GET', `/${index}/_search`],
      ['GET', `/${index}/_count`],
      ['GET', `/${index}/_doc/1`],
      ['GET', `/${index}/_mapping`],
      ['GET', `/${index}/_settings`],
      ['GET', `/${index}/_alias`],
      ['GET', `/${index}`],
    ];
  }

  it('allows rebuilds with them, which keep two snapshots and record the changes', async () => {
    const before = await served();
    await suite.dataset.write(
      toCsv(PACKAGES.map((entry, i) => (i === 0 ? { ...entry, version: '2' } : entry))),
    );
    expect((await suite.service.rebuild()).status).to.equal(202);
    const current = await served();
    const indices = await suite.service.indices();
    expect(indices.filter((index) => !others.includes(index))).to.have.members([before, current]);
    const [from, to] = [snapshotIdOf(before), snapshotIdOf(current)];
    const { body } = await suite.service.get(`/changes?since=${from}`);
    expect(body).to.deep.include({ from, to, count: 1 });
    expect((await fetch(`${suite.service.url}/changes.atom`)).status).to.equal(200);
  });

  it('tells the keys when they expire', async () => {
    const metrics = await scrape(suite.service.server.metricsUrl);
    for (const key of ['reading', 'rebuilding']) {
      const [sample] = metrics.all('api_key_expiration_timestamp_seconds', { key });
      expect(sample?.value, key).to.be.closeTo(Date.now() / 1000 + 30 * 86_400, 3600);
    }
  });

  it('allows a rollback by the command line with them', async () => {
    const newer = await served();
    const { code, stderr } = await runCommand('cli/rollback', { ...environment(), ...keys });
    expect(code, stderr).to.equal(0);
    expect(await served()).not.to.equal(newer);
  });

  it('lets the read key change nothing', async () => {
    const index = await served();
    await expectRefused(keys.ELASTICSEARCH_API_KEY, [
      ...ofCluster,
      ...changesOf(changesIndexOf(alias, snapshotIdOf(index))),
      ...changesOf(index),
      ...changesOf(alias),
      ...changesOf(rebuildsIndexOf(slug)),
      ['PUT', `/${newIndexName(alias, new Date())}`],
      ['PUT', `/${slug}-mine`],
    ]);
  });

  it('lets the read key see only its registry', async () => {
    const key = keys.ELASTICSEARCH_API_KEY;
    await expectRefused(key, [...others, rebuildsIndexOf(slug)].flatMap(readsOf));
    const client = new Client({ node: engine.url, auth: { apiKey: key } });
    const { hits } = await client.search({
      index: '*',
      size: 1000,
      query: { term: { 'name.keyword': 'secret' } },
    });
    expect(hits.hits).to.deep.equal([]);
    const seen = Object.keys(await client.indices.get({ index: '*' }));
    expect(seen).to.have.members([await served(), await served(previousAliasOf(alias))]);
    await client.close();
  });

  it('lets the rebuild key do nothing outside its indices, or with the cluster', async () => {
    await expectRefused(keys.ELASTICSEARCH_REBUILD_API_KEY, [
      ...ofCluster,
      ...others.flatMap(changesOf),
      ...others.flatMap(readsOf),
      ['PUT', `/${alias}-mine`],
      ['PUT', `/${alias}-previous-mine`],
      ['PUT', `/${slug}-mine`],
      ['POST', '/_aliases', { actions: [{ add: { index: await served(), alias: 'mine' } }] }],
    ]);
  });

  it('lets the rebuild key change only documents of the state of rebuilds', async () => {
    const state = rebuildsIndexOf(slug);
    const key = keys.ELASTICSEARCH_REBUILD_API_KEY;
    const mine = { ended_at: 0, reason: 'mine' };
    const allowed = await statuses(key, [
      ['GET', `/${state}/_doc/state`],
      ['PUT', `/${state}/_doc/mine`, mine],
      ['POST', `/${state}/_update/mine`, { script: { source: "ctx._source.reason = 'other'" } }],
      ['GET', `/${state}/_search`],
      ['DELETE', `/${state}/_doc/mine`],
      // As the history is pruned: the document may be searchable although it is deleted.
      ['POST', `/${state}/_delete_by_query?conflicts=proceed`, { query: { term: { reason: 'mine' } } }],
    ]);
    expect(new Set(Object.values(allowed)), JSON.stringify(allowed)).to.deep.equal(new Set([200]));
    const ofDocuments = /_doc|_update\/|_by_query/;
    await expectRefused(key, [
      ...changesOf(state).filter(([, path]) => !ofDocuments.test(path)),
      ['GET', `/${state}/_mapping`],
      ['GET', `/${state}/_settings`],
      ['GET', `/${state}`],
    ]);
  });

  it('does not let the rebuild key write to a complete index', async () => {
    const index = await served();
    await expectRefused(keys.ELASTICSEARCH_REBUILD_API_KEY, [
      ['POST', `/${index}/_doc`, { name: 'mine' }],
      ['POST', `/${alias}/_doc`, { name: 'mine' }],
      ['DELETE', `/${index}/_doc/1`],
      ['PUT', `/${index}/_mapping`, { properties: { mine: { type: 'keyword' } } }],
      ['POST', `/${index}/_close`],
    ]);
  });

  it('rejects a wrong key', async () => {
    const wrong = keepSecret(Buffer.from('an-id-change-me:a-secret-change-me').toString('base64'));
    await withServer({ ELASTICSEARCH_API_KEY: wrong }, async (url, { stdout }) => {
      expect(stdout).to.contain('Elasticsearch does not accept ELASTICSEARCH_API_KEY');
      const health = await request(`${url}/health`);
      expect(health.status).to.equal(503);
      expect(health.body).to.deep.equal({ status: 'unavailable', total_packages: 0 });
      for (const path of ['/search?q=lib', '/browse', '/stats', REBUILD]) {
        expectProblem(await request(url + path), 503, 'search_unavailable');
      }
    });
  });

  it('rejects a wrong password, which does not appear in the log', async () => {
    // support/hooks.ts fails the run if a log contains one of them.
    const password = keepSecret('wrong/password-change-me');
    const encoded = keepSecret(encodeURIComponent(password));
    keepSecret(Buffer.from(`${ADMINISTRATOR.user}:${password}`).toString('base64'));
    const env = {
      ELASTICSEARCH_URL: engine.url.replace('://', `://${ADMINISTRATOR.user}:${encoded}@`),
      LOG_LEVEL: 'trace',
    };
    const { stdout } = await withServer(env, async (url) => {
      expectProblem(await request(`${url}/search?q=lib`), 503, 'search_unavailable');
      expectProblem(await request(url + REBUILD), 503, 'search_unavailable');
    });
    expect(stdout).to.match(/"level":50,.*"statusCode":401/);
  });

  /** The key for rebuilds of a release that kept no state in Elasticsearch. */
  async function olderKey(): Promise<string> {
    const { indices = [] } = builderRole(slug);
    const role = { indices: indices.filter(({ names }) => !names.includes(rebuildsIndexOf(slug))) };
    const { encoded } = await administrator.security.createApiKey({
      name: 'older',
      role_descriptors: { older: role },
    });
    return keepSecret(encoded);
  }

  for (const [what, rebuildKey] of [
    ['only the read key', () => Promise.resolve({})],
    ['an older rebuild key', async () => ({ ELASTICSEARCH_REBUILD_API_KEY: await olderKey() })],
  ] as const)
    it(`rebuilds nothing with ${what}, which one line explains`, async () => {
      const before = await everything();
      const { ELASTICSEARCH_API_KEY } = keys;
      const env = { ELASTICSEARCH_API_KEY, ...(await rebuildKey()) };
      const reason =
        'ELASTICSEARCH_REBUILD_API_KEY does not allow indices:admin/create: npm run keys makes a new one';
      await withServer(env, async (url) => {
        const detail = expectProblem(await request(url + REBUILD), 503, 'search_unavailable');
        expect(detail).to.equal(`no rebuild can start: ${reason}`);
        expect((await request(`${url}/search?q=lib`)).status).to.equal(200);
        expect((await request(`${url}/health`)).status).to.equal(200);
      });
      const DATASET_URL = suite.dataset.url;
      const { code, stderr } = await runCommand('cli/rebuild', { ...environment(), ...env, DATASET_URL });
      expect([code, stderr]).to.deep.equal([1, `the rebuild lock cannot be acquired: ${reason}\n`]);
      expect(await everything()).to.deep.equal(before);
    });

  describe('lets npm run keys', () => {
    it('revoke all keys but those in the environment', async () => {
      const again = await runKeys(['--expiration', '1d']);
      expect(again.code, again.stderr).to.equal(0);
      expect(again.stderr).to.equal('2 older keys of this registry are still valid: see --revoke-others\n');
      const newer = readKeys(again.stdout);
      const search: Attempt[] = [['GET', `/${alias}/_search`]];
      const status = async (key: string) => Object.values(await statuses(key, search))[0];

      const aimless = await runKeys(['--revoke-others']);
      expect(aimless.code).to.equal(2);
      expect(aimless.stderr).to.match(
        /^ELASTICSEARCH_API_KEY must be a valid key .*: nothing was revoked\n$/,
      );
      expect(await status(newer.ELASTICSEARCH_API_KEY)).to.equal(200);

      const revoked = await runKeys(['--revoke-others'], { ...keys });
      expect(revoked).to.deep.equal({
        code: 0,
        stdout: '',
        stderr: '2 older keys of this registry are revoked\n',
      });
      expect(await status(newer.ELASTICSEARCH_API_KEY)).to.equal(401);
      expect(await status(keys.ELASTICSEARCH_API_KEY)).to.equal(200);
    });

    it('create no keys if something is missing or wrong', async () => {
      const wrong =
        'Elasticsearch does not accept ELASTICSEARCH_ADMIN_USER and ELASTICSEARCH_ADMIN_PASSWORD\n';
      for (const [env, code, stderr] of [
        [{ ELASTICSEARCH_ADMIN_USER: '' }, 2, 'ELASTICSEARCH_ADMIN_USER is required\n'],
        [{ ELASTICSEARCH_ADMIN_PASSWORD: 'change-me' }, 1, wrong],
      ] as const)
        expect(await runKeys([], env)).to.deep.equal({ code, stdout: '', stderr });
    });
  });

  describe('lets npm start', () => {
    const withUser = (password: string) => {
      const url = new URL(engine.url);
      return Object.assign(url, { username: ADMINISTRATOR.user, password }).href;
    };

    it('exit with a one-line error if credentials are missing or wrong', async () => {
      for (const [node, apiKey, message] of [
        [
          engine.url,
          undefined,
          /^Elasticsearch requires ELASTICSEARCH_API_KEY, or a valid user .*: make keys .*$/,
        ],
        [engine.url, 'wrong', /^Elasticsearch does not accept ELASTICSEARCH_API_KEY: .*$/],
        [
          withUser('change-me'),
          undefined,
          /^Elasticsearch requires ELASTICSEARCH_API_KEY, or a valid user in ELASTICSEARCH_URL: make keys .*$/,
        ],
      ] as const) {
        await rejects(checkElasticsearch({ nodes: [node], apiKey }), { message });
      }
    });

    it('serve with the keys, or with a user and a password in the URL', async () => {
      for (const env of [keys, { ELASTICSEARCH_URL: withUser(ADMINISTRATOR.password) }]) {
        const program = new SpawnedCli('dev/start', { ...environment(), PORT: '0', ...env });
        await program.prints(/The API is at/, 30_000);
        expect(await program.stop('SIGINT')).to.equal(0);
      }
    });
  });

  /** Restarts Elasticsearch, which rejects the right key until `release` has been called and the failure was met. */
  async function restartWithoutKeys(release: () => void, failed: () => Promise<unknown>): Promise<void> {
    const allocation = (enable: 'none' | null) =>
      administrator.cluster.putSettings({
        persistent: { 'cluster.routing.allocation.enable': enable },
      });
    const search: Attempt[] = [['GET', `/${alias}/_search`]];
    const status = async () => Object.values(await statuses(keys.ELASTICSEARCH_API_KEY, search))[0];
    // The security index gets no shard, so that lookups of keys fail.
    await allocation('none');
    await engine.kill();
    const restarted = engine.restart();
    await waitFor(async () => (await status()) === 401, 'the key to be rejected', 120_000);
    release();
    await failed();
    await allocation(null);
    await restarted;
  }

  it('resumes a load after its restart, although it rejects the right key until it can look it up', async () => {
    const before = snapshotIdOf(await served());
    const proxy = await EngineProxy.start(engine.url);
    const load = proxy.hold('before', isBulk);
    await withServer({ ...keys, ELASTICSEARCH_URL: proxy.url }, async (url, program) => {
      expect((await request(`${url}${REBUILD}&force=true`)).status).to.equal(202);
      await load.arrived;
      reading.engineMayBeAway = true;
      await restartWithoutKeys(
        () => load.release(),
        () => program.prints(/cannot look up API keys.*a rebuild request failed and is retried/, 30_000),
      );
      const snapshot = async () => (await request(`${url}/stats`)).headers.get('X-Snapshot');
      await waitFor(async () => (await snapshot()) !== before, 'the rebuild', 60_000);
      await waitFor(async () => (await suite.service.get('/health')).status === 200, 'recovery', 30_000);
      reading.engineMayBeAway = false;
    }).finally(() => proxy.close());
  });

  reading.itNoticesNothing();
});

describe('An Elasticsearch that allows no scripts', function () {
  this.timeout(ENGINES_TIMEOUT_MS);

  it('is named as the reason by the first rebuild, in one line', async () => {
    const nodes = await isolatedNodes();
    const { url } = await nodes.start('no-scripts', { settings: { 'script.allowed_types': 'none' } });
    const env = { ...environmentOf(newSlug()), ELASTICSEARCH_URL: url };
    const { code, stderr } = await runCommand('cli/rebuild', env);
    await nodes.stop();
    expect(code).to.equal(1);
    expect(stderr).to.match(
      /^the rebuild lock cannot be acquired: Elasticsearch responded with 400: .*cannot execute \[inline\] scripts.*\n$/,
    );
  });
});
