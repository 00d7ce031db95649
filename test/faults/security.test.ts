import { randomBytes } from 'node:crypto';
import { Client, errors } from '@elastic/elasticsearch';
import { expect } from 'chai';
import type { Service } from '../../src/dev/service.js';
import { changesIndexOf, newIndexName, previousAliasOf, snapshotIdOf } from '../../src/search/index-names.js';
import { builderRole, readerRole } from '../../src/cli/roles.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { keepSecret } from '../support/secret-scanner.js';
import { isolatedNodes, type IsolatedNodes } from '../support/isolated-nodes.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { newSlug, REBUILD, REBUILD_SECRET, request, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const PACKAGES = bundledPackages().slice(0, 3000);

const ADMINISTRATOR = { user: 'administrator', password: keepSecret(randomBytes(12).toString('hex')) };
const AUTH = { username: ADMINISTRATOR.user, password: ADMINISTRATOR.password };
const ADMINISTRATOR_ENV = {
  ELASTICSEARCH_ADMIN_USER: ADMINISTRATOR.user,
  ELASTICSEARCH_ADMIN_PASSWORD: ADMINISTRATOR.password,
};

interface Keys {
  ELASTICSEARCH_API_KEY: string;
  ELASTICSEARCH_REBUILD_API_KEY: string;
}

/** A request to try: method, path, and optional body. */
type Attempt = [method: string, path: string, body?: object];

describe('An Elasticsearch with security', function () {
  this.timeout(120_000);
  const slug = newSlug();
  const alias = `${slug}-packages`;
  /** Indices of registries with similar names, and indices that are not builds. */
  const others = [
    newIndexName(`${alias}-b-packages`, new Date()),
    newIndexName(`${newSlug()}-packages`, new Date()),
    `${alias}x`,
    `${alias}-notes`,
    `${newIndexName(alias, new Date())}-copy`,
    `${alias}-changes-mine`,
    `${newIndexName(`${alias}-changes`, new Date())}-copy`,
    changesIndexOf(`${alias}-b-packages`, '20260101t000000z-0123abcd'),
  ];
  let nodes: IsolatedNodes;
  let engine: Service;
  let administrator: Client;
  let keys: Keys;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    nodes = await isolatedNodes();
    engine = await nodes.start('secured', { administrator: ADMINISTRATOR });
    administrator = new Client({ node: engine.url, auth: AUTH });
    for (const index of others) {
      await administrator.index({ index, document: { name: 'secret' }, refresh: true });
    }
    keys = readKeys((await runKeys()).stdout);
  });
  const suite = useService(
    () => PACKAGES,
    () => ({ ELASTICSEARCH_URL: engine.url, ...keys, ...UNCACHED }),
    { slug, auth: AUTH },
  );
  const reading = useBackgroundReader(suite, [PACKAGES.length]);
  after(async () => {
    await administrator.close();
    await nodes.stop();
  });

  async function runKeys(args: string[] = [], env: Record<string, string> = {}) {
    const program = new SpawnedCli(
      'src/cli/keys.ts',
      { ELASTICSEARCH_URL: engine.url, REGISTRY_SLUG: slug, ...ADMINISTRATOR_ENV, ...env },
      args,
    );
    const code = await program.exit();
    return { code, stdout: program.stdout, stderr: program.stderr };
  }

  /** Parses the keys, and registers them and their parts as secrets. */
  function readKeys(stdout: string): Keys {
    const [, reader = '', builder = ''] =
      /^ELASTICSEARCH_API_KEY=(\S+)\nELASTICSEARCH_REBUILD_API_KEY=(\S+)\n$/.exec(stdout) ?? [];
    for (const key of [reader, builder]) {
      const [, secret = ''] = Buffer.from(keepSecret(key), 'base64').toString().split(':');
      expect(keepSecret(secret)).to.have.length.greaterThan(20);
    }
    return { ELASTICSEARCH_API_KEY: reader, ELASTICSEARCH_REBUILD_API_KEY: builder };
  }

  /** Starts a server on the same registry in a child process. */
  async function server(env: Record<string, string>): Promise<SpawnedCli> {
    const { redis } = await engines();
    return new SpawnedCli('src/main.ts', {
      PORT: '0',
      ELASTICSEARCH_URL: engine.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: slug,
      DATASET_URL: suite.dataset.url,
      REBUILD_SECRET,
      RATE_LIMIT_POINTS: '0',
      ...env,
    });
  }

  async function served(name = alias): Promise<string> {
    // Not by `getAlias`, which fails if a build loses its loading alias meanwhile.
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

  it('serves from a cold start with the two keys that the command creates', async () => {
    expect((await suite.service.get('/health')).body).to.deep.equal({
      status: 'ok',
      total_packages: PACKAGES.length,
    });
    expect((await suite.service.get('/search?q=lib')).body.count).to.be.greaterThan(0);
    expect((await suite.service.get('/browse?page=30&limit=100')).body.results).to.have.length(100);
    expect((await suite.service.get('/stats')).status).to.equal(200);
  });

  it('allows rebuilds with them, which keep two generations', async () => {
    const first = await served();
    for (let i = 0; i < 2; i++) {
      expect((await suite.service.rebuild()).status).to.equal(202);
      expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    }
    const indices = await suite.service.indices();
    expect(indices).not.to.include(first);
    expect(indices.filter((index) => !others.includes(index))).to.have.length(2);
  });

  it('allows recording and reading changes with them', async () => {
    const { service, dataset } = suite;
    const since = snapshotIdOf(await served());
    await dataset.write(toCsv(PACKAGES.map((entry, i) => (i === 0 ? { ...entry, version: '2' } : entry))));
    expect((await service.rebuild()).status).to.equal(202);
    const { body } = await service.get(`/changes?since=${since}`);
    expect(body).to.deep.include({ from: since, to: snapshotIdOf(await served()), count: 1 });
    expect((await fetch(`${service.url}/changes.atom`)).status).to.equal(200);
    await dataset.write(toCsv(PACKAGES));
    expect((await service.rebuild()).status).to.equal(202);
  });

  it('allows a rollback by the command line with them', async () => {
    const newer = await served();
    const { redis } = await engines();
    const env = { ELASTICSEARCH_URL: engine.url, REDIS_URL: redis.url, REGISTRY_SLUG: slug, ...keys };
    const program = new SpawnedCli('src/cli/rollback.ts', env);
    expect(await program.exit(), program.stderr).to.equal(0);
    expect(await served()).not.to.equal(newer);
  });

  it('lets the read key change nothing', async () => {
    const index = await served();
    await expectRefused(keys.ELASTICSEARCH_API_KEY, [
      ...ofCluster,
      ...changesOf(changesIndexOf(alias, snapshotIdOf(index))),
      ...changesOf(index),
      ...changesOf(alias),
      ['PUT', `/${newIndexName(alias, new Date())}`],
      ['PUT', `/${slug}-mine`],
    ]);
  });

  it('lets the read key see only its registry', async () => {
    const key = keys.ELASTICSEARCH_API_KEY;
    await expectRefused(key, others.flatMap(readsOf));
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

  it('lets the rebuild key do nothing outside its builds, or with the cluster', async () => {
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

  it('does not let the rebuild key write to a complete build', async () => {
    const index = await served();
    await expectRefused(keys.ELASTICSEARCH_REBUILD_API_KEY, [
      ['POST', `/${index}/_doc`, { name: 'mine' }],
      ['POST', `/${alias}/_doc`, { name: 'mine' }],
      ['DELETE', `/${index}/_doc/1`],
      ['PUT', `/${index}/_mapping`, { properties: { mine: { type: 'keyword' } } }],
      ['POST', `/${index}/_close`],
    ]);
  });

  it('rejects a wrong key: the log says so, and requests get 503', async () => {
    const wrong = keepSecret(Buffer.from('an-id-change-me:a-secret-change-me').toString('base64'));
    const program = await server({ ELASTICSEARCH_API_KEY: wrong });
    try {
      const url = await program.url();
      expect(program.stdout).to.contain('Elasticsearch does not accept ELASTICSEARCH_API_KEY');
      const health = await request(`${url}/health`);
      expect(health.status).to.equal(503);
      expect(health.body).to.deep.equal({ status: 'unavailable', total_packages: 0 });
      for (const path of ['/search?q=lib', '/browse', '/stats', REBUILD]) {
        expectProblem(await request(url + path), 503, 'search_unavailable');
      }
    } finally {
      await program.stop();
    }
    const { redis } = await engines();
    const command = new SpawnedCli('src/cli/rollback.ts', {
      ELASTICSEARCH_URL: engine.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: slug,
      ELASTICSEARCH_API_KEY: wrong,
    });
    expect(await command.exit()).to.equal(1);
    expect(command.stderr).to.match(/^Elasticsearch does not accept ELASTICSEARCH_API_KEY: .*\n$/);
  });

  for (const level of ['info', 'trace']) {
    it(`rejects a wrong password, which does not appear in the log at level ${level}`, async () => {
      const password = keepSecret('wrong/password-change-me');
      const encoded = encodeURIComponent(password);
      const program = await server({
        ELASTICSEARCH_URL: engine.url.replace('://', `://${ADMINISTRATOR.user}:${encoded}@`),
        LOG_LEVEL: level,
      });
      try {
        const url = await program.url();
        expectProblem(await request(`${url}/search?q=lib`), 503, 'search_unavailable');
        expectProblem(await request(url + REBUILD), 503, 'search_unavailable');
      } finally {
        await program.stop();
      }
      expect(program.stdout).to.match(/"level":50,.*"statusCode":401/);
      const basic = Buffer.from(`${ADMINISTRATOR.user}:${password}`).toString('base64');
      for (const form of [password, encoded, basic]) {
        expect(program.stdout + program.stderr).not.to.contain(form);
      }
    });
  }

  it('serves with only the read key; a rebuild fails, reports why, and changes nothing', async () => {
    const before = await everything();
    const program = await server({ ELASTICSEARCH_API_KEY: keys.ELASTICSEARCH_API_KEY });
    const reason = 'ELASTICSEARCH_REBUILD_API_KEY does not allow indices:admin/create';
    try {
      const url = await program.url();
      expect((await request(url + REBUILD)).status).to.equal(202);
      await waitFor(() => program.stdout.includes(reason), 'the rebuild to fail');
      expect((await request(`${url}/search?q=lib`)).status).to.equal(200);
      expect((await request(`${url}/health`)).status).to.equal(200);
    } finally {
      await program.stop();
    }
    expect(await everything()).to.deep.equal(before);
  });

  it('serves with a key of an earlier release, and the previous snapshot only on replicas that have served it', async () => {
    const role = readerRole(slug);
    const indices = role.indices?.filter(({ names }) => !names.includes(previousAliasOf(alias))) ?? [];
    expect(indices).to.have.length(2);
    const { encoded } = await administrator.security.createApiKey({
      name: `${slug} of an earlier release`,
      role_descriptors: { reader: { ...role, indices } },
    });
    const env = { ELASTICSEARCH_API_KEY: keepSecret(encoded) };
    const first = await server(env);
    const processes = [first];
    try {
      const search = async (program: SpawnedCli, index: string) =>
        (await request(`${await program.url()}/search?q=lib&snapshot=${snapshotIdOf(index)}`)).status;
      const before = await served();
      expect(await search(first, before)).to.equal(200);
      expect((await suite.service.rebuild()).status).to.equal(202);
      const now = await served();
      expect(now).not.to.equal(before);
      processes.push(await server(env));
      const [, fresh] = processes as [SpawnedCli, SpawnedCli];
      for (const program of [first, fresh]) expect(await search(program, now)).to.equal(200);
      expect(await search(first, before)).to.equal(200);
      expect(await search(fresh, before)).to.equal(410);
      // With the keys of this release, every replica finds it.
      expect((await suite.service.get(`/search?q=lib&snapshot=${snapshotIdOf(before)}`)).status).to.equal(
        200,
      );
    } finally {
      for (const program of processes) await program.stop();
    }
  });

  it('allows rebuilding and serving with keys of an earlier release, but not changes, as the log reports', async () => {
    const isOlder = (name: string) => !name.includes('-changes-');
    const env: Record<string, string> = {};
    for (const [variable, role] of [
      ['ELASTICSEARCH_API_KEY', readerRole(slug)],
      ['ELASTICSEARCH_REBUILD_API_KEY', builderRole(slug)],
    ] as const) {
      const indices = role.indices?.map(({ names, privileges }) => ({
        // Earlier releases used a shorter expression for the indices of loads.
        names: [names]
          .flat()
          .filter(isOlder)
          .map((name) => name.replace('(changes-)?', '')),
        privileges: privileges.filter((privilege) => privilege !== 'indices:admin/mapping/put'),
      }));
      expect(indices).not.to.deep.equal(role.indices);
      const { encoded } = await administrator.security.createApiKey({
        name: `${slug} of an earlier release, for ${variable}`,
        role_descriptors: { older: { ...role, indices: indices ?? [] } },
      });
      env[variable] = keepSecret(encoded);
    }
    const program = await server(env);
    try {
      const url = await program.url();
      const before = await served();
      // From the current snapshot there is nothing to read; changes recorded earlier are not readable.
      expect((await request(`${url}/changes?since=${snapshotIdOf(before)}`)).status).to.equal(200);
      expectProblem(await request(`${url}/changes`), 503, 'search_unavailable');
      expect((await request(`${url}${REBUILD}`)).status).to.equal(202);
      await waitFor(async () => (await served()) !== before, 'the rebuild', 60_000);
      await waitFor(
        async () => (await request(`${url}/stats`)).headers.get('X-Snapshot') !== snapshotIdOf(before),
        'the replica to see the flip',
      );
      expect((await request(`${url}/search?q=lib`)).body.count).to.be.greaterThan(0);
      for (const path of ['/changes', `/changes?since=${snapshotIdOf(before)}`, '/changes.atom']) {
        expectProblem(await request(url + path), 503, 'search_unavailable');
      }
      for (const variable of Object.keys(env)) {
        expect(program.stdout).to.include(`${variable} lacks privileges that /changes needs`);
      }
      expect(program.stdout).to.include('/changes is unavailable');
    } finally {
      await program.stop();
    }
    await suite.service.server.generations.refresh();
    expectProblem(await suite.service.get('/changes'), 503, 'search_unavailable');
    expect((await suite.service.rebuild()).status).to.equal(202);
    expect((await suite.service.get('/changes')).status).to.equal(200);
  });

  describe('lets npm run keys', () => {
    it('keep older keys, and revoke them with --revoke-others and the keys to keep', async () => {
      const again = await runKeys(['--expiration', '1d']);
      expect(again.code, again.stderr).to.equal(0);
      expect(again.stderr).to.equal('2 older keys of this registry are still valid: see --revoke-others\n');
      const newer = readKeys(again.stdout);
      const search: Attempt[] = [['GET', `/${alias}/_search`]];
      const status = async (key: string) => Object.values(await statuses(key, search))[0];
      expect(await status(newer.ELASTICSEARCH_API_KEY)).to.equal(200);

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

    const refused: [why: string, args: string[], env: Record<string, string>, code: number, line: RegExp][] =
      [
        [
          'no administrator',
          [],
          { ELASTICSEARCH_ADMIN_USER: '' },
          2,
          /^ELASTICSEARCH_ADMIN_USER is required\n$/,
        ],
        ['no cluster', [], { ELASTICSEARCH_URL: '' }, 2, /^ELASTICSEARCH_URL is required, such as \S+\n$/],
        [
          'a cluster that does not respond',
          [],
          { ELASTICSEARCH_URL: 'http://127.0.0.1:1' },
          1,
          /^Elasticsearch does not respond at ELASTICSEARCH_URL \(.*ECONNREFUSED.*\): start it, or correct the address\n$/,
        ],
        ['an invalid expiration', ['--expiration', 'soon'], {}, 2, /^--expiration must be .*\nusage: .*\n$/],
        ['an unknown option', ['--password', 'x'], {}, 2, /usage: npm run --silent keys/],
        [
          'a wrong password',
          [],
          { ELASTICSEARCH_ADMIN_PASSWORD: 'change-me' },
          1,
          /^Elasticsearch does not accept ELASTICSEARCH_ADMIN_USER and ELASTICSEARCH_ADMIN_PASSWORD\n$/,
        ],
      ];
    for (const [why, args, env, code, line] of refused) {
      it(`create no keys, and report why, with ${why}`, async () => {
        const ended = await runKeys(args, env);
        expect(ended.stderr).to.match(line);
        expect(ended).to.include({ code, stdout: '' });
      });
    }
  });

  describe('lets npm start', () => {
    const withUser = (password: string) => {
      const url = new URL(engine.url);
      return Object.assign(url, { username: ADMINISTRATOR.user, password }).href;
    };
    const refused: [why: string, env: () => Record<string, string>, line: RegExp][] = [
      [
        'no credentials',
        () => ({}),
        /^Elasticsearch requires authentication: make keys .*ELASTICSEARCH_API_KEY$/,
      ],
      [
        'a wrong key',
        () => ({ ELASTICSEARCH_API_KEY: 'wrong' }),
        /^Elasticsearch does not accept .*_API_KEY: .*$/,
      ],
      [
        'a wrong password in the URL',
        () => ({ ELASTICSEARCH_URL: withUser('change-me') }),
        /^Elasticsearch does not accept the user and the password in ELASTICSEARCH_URL: correct them$/,
      ],
    ];
    for (const [why, env, line] of refused) {
      it(`exit with one line for ${why}`, async () => {
        const { redis } = await engines();
        const urls = { ELASTICSEARCH_URL: engine.url, REDIS_URL: redis.url };
        const program = new SpawnedCli('src/dev/start.ts', { ...urls, PORT: '0', ...env() });
        expect(await program.exit()).to.equal(1);
        expect(program.stderr.trim()).to.match(line);
      });
    }

    it('serve with the keys, or with a user and a password in the URL', async () => {
      const { redis } = await engines();
      for (const env of [keys, { ELASTICSEARCH_URL: withUser(ADMINISTRATOR.password) }]) {
        const program = new SpawnedCli('src/dev/start.ts', {
          ELASTICSEARCH_URL: engine.url,
          REDIS_URL: redis.url,
          REGISTRY_SLUG: slug,
          PORT: '0',
          ...env,
        });
        await program.prints(/The API is at/, 30_000);
        expect(await program.stop('SIGINT')).to.equal(0);
      }
    });
  });

  reading.itNoticesNothing();
});
