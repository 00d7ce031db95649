import { expect } from 'chai';
import { Redis } from 'ioredis';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { datasetFile, packagesNamed, toCsv, type DatasetFile } from '../support/datasets.js';
import { engines, useOwnEngine } from '../support/engines.js';
import { keepSecret } from '../support/secret-scanner.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import {
  BYPASS_SECRET,
  newSlug,
  REBUILD,
  REBUILD_SECRET,
  request,
  removeRegistries,
} from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** Secrets of the operator, which must not appear in the log or on standard error. */
const REDIS_PASSWORD = keepSecret('redis/pass"word-change-me');
const WRONG_PASSWORD = keepSecret('wrong@password-change-me');
const DATASET_PASSWORD = keepSecret('dataset:password-change-me');
const DATASET_TOKEN = keepSecret('dataset+token-change-me');
const KIBANA_KEY = keepSecret('kibana-key-change-me');
const ALL = [
  REDIS_PASSWORD, WRONG_PASSWORD, DATASET_PASSWORD, DATASET_TOKEN, KIBANA_KEY, REBUILD_SECRET, BYPASS_SECRET,
]; // prettier-ignore

/** Fails if one of them was printed, in any encoding. */
function expectNoSecrets({ stdout, stderr }: SpawnedCli): void {
  for (const secret of ALL) {
    for (const form of [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]) {
      expect(stdout + stderr).not.to.contain(form);
    }
  }
}

/** At log level trace, whose lines include those of all others. */
describe('Secrets', function () {
  this.timeout(120_000);
  const slugs: string[] = [];
  const programs: SpawnedCli[] = [];
  const engine = useOwnEngine('redis');
  let redis: Redis;
  let dataset: DatasetFile;
  let web: DatasetServer;
  /** How the dataset server responds next. */
  let answer: Parameters<typeof datasetServer>[0];

  before(async () => {
    dataset = await datasetFile(toCsv(packagesNamed(['alpha', 'beta'])));
    redis = new Redis(engine().url);
    redis.on('error', () => undefined);
    await redis.config('SET', 'requirepass', REDIS_PASSWORD);
    await redis.auth(REDIS_PASSWORD);
    web = await datasetServer((incoming, response) => answer(incoming, response));
  });

  after(async () => {
    for (const program of programs) program.signal('SIGKILL');
    redis.disconnect();
    await web.close();
    await dataset.remove();
    await removeRegistries(slugs);
  });

  function withPassword(url: string, password: string, user = ''): string {
    return url.replace('://', `://${user}:${encodeURIComponent(password)}@`);
  }

  const secretDataset = () =>
    `${withPassword(web.url, DATASET_PASSWORD, 'reader')}?token=${encodeURIComponent(DATASET_TOKEN)}`;
  const wrongRedis = () => ({ REDIS_URL: withPassword(engine().url, WRONG_PASSWORD, 'default') });

  function start(script: string, env: Record<string, string> = {}, args: string[] = []): SpawnedCli {
    const slug = newSlug();
    slugs.push(slug);
    const variables = {
      ELASTICSEARCH_URL: engines().elasticsearch.url,
      REDIS_URL: withPassword(engine().url, REDIS_PASSWORD),
      REGISTRY_SLUG: slug,
      DATASET_URL: dataset.url,
      REBUILD_SECRET,
      BYPASS_SECRET,
      PORT: '0',
      LOG_LEVEL: 'trace',
    };
    const program = new SpawnedCli(script, { ...variables, ...env }, args);
    programs.push(program);
    return program;
  }

  it('are not logged if the Redis password is right, and then changes', async () => {
    const program = start('main');
    const url = await program.url();
    await waitFor(async () => (await request(`${url}/health`)).status === 200, 'the service', 20_000);
    expect((await request(`${url}/stats`)).status).to.equal(200);
    await waitFor(async () => (await request(url + REBUILD)).status === 202, 'the first rebuild to end');
    expect((await request(`${url}/get-bypass?secret=${BYPASS_SECRET}`)).status).to.equal(200);
    await redis.config('SET', 'requirepass', 'another-change-me');
    try {
      await waitFor(async () => {
        // Redis does not check the password of open connections again.
        await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        return program.stdout.includes('WRONGPASS');
      }, 'the wrong password in the log');
    } finally {
      await redis.config('SET', 'requirepass', REDIS_PASSWORD);
    }
    await program.prints(/Redis responds again/, 10_000);
    expect(await program.stop()).to.equal(0);
    expectNoSecrets(program);
  });

  it('are not logged if the Redis password is wrong, but the reason is', async () => {
    const program = start('main', wrongRedis());
    const url = await program.url();
    expect((await request(`${url}/debug-ip`)).status).to.equal(200);
    expect((await request(`${url}/stats`)).status).to.equal(503);
    expect((await request(url + REBUILD)).status).to.equal(503);
    expect(await program.stop()).to.equal(0);
    expect(program.stdout).to.match(/"level":[45]0,.*"msg":"Redis does not respond/);
    expect(program.stdout).to.contain('WRONGPASS');
    expectNoSecrets(program);
  });

  it('are not logged if the dataset server refuses, disconnects, or redirects', async () => {
    answer = (_request, response) => response.writeHead(403).end();
    const program = start('main', { DATASET_URL: secretDataset() });
    const url = await program.url();
    await program.prints(/responded with 403/, 20_000);
    const redirected = `http://u:${DATASET_PASSWORD}@127.0.0.1:1`;
    const broken: [listener: typeof answer, reason: RegExp][] = [
      [(incoming) => incoming.socket.destroy(), /could not be downloaded: (?!.*403)./],
      [
        ({ url: path = '' }, response) => response.writeHead(302, { Location: redirected + path }).end(),
        /ECONNREFUSED/,
      ],
    ];
    for (const [listener, reason] of broken) {
      answer = listener;
      await waitFor(async () => {
        const { text, body } = await request(url + REBUILD);
        expect(text).not.to.contain('change-me');
        return reason.test(body.last_failure?.reason ?? '');
      }, String(reason));
    }
    expect(await program.stop()).to.equal(0);
    expectNoSecrets(program);
  });

  const commands: [what: string, script: string, env: () => Record<string, string>, args?: () => string[]][] =
    [
      ['npm start with a wrong Redis password', 'dev/start', wrongRedis],
      ['npm start without its dataset', 'dev/start', () => ({ DATASET_URL: secretDataset() })],
      [
        'npm run rebuild without its dataset',
        'cli/rebuild',
        () => ({}),
        () => ['--dataset', secretDataset()],
      ],
      ['npm run rollback with a wrong Redis password', 'cli/rollback', wrongRedis],
      [
        'npm run kibana:setup with a wrong key',
        'cli/kibana-setup',
        () => ({ KIBANA_URL: new URL(web.url).origin, KIBANA_API_KEY: KIBANA_KEY }),
      ],
    ];
  it('are not printed by commands that fail', async () => {
    answer = (_request, response) => response.writeHead(401).end();
    const ended = commands.map(async ([what, script, env, args]) => {
      const program = start(script, env(), args?.());
      expect(await program.exit(), what).to.equal(1);
      expect(program.stderr.trim().split('\n'), what).to.have.length(1);
      expectNoSecrets(program);
    });
    await Promise.all(ended);
  });
});
