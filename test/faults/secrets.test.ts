import { expect } from 'chai';
import { Redis } from 'ioredis';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { datasetFile, packagesNamed, toCsv, type DatasetFile } from '../support/datasets.js';
import { engines, useOwnEngine } from '../support/engines.js';
import { keepSecret } from '../support/secret-scanner.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { removeRegistries } from '../support/registries.js';
import { BYPASS_SECRET, newSlug, REBUILD, REBUILD_SECRET, request } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** A secret of the operator. support/hooks.ts fails the run if a program or a response repeats it, in any encoding. */
function secret(text: string): string {
  for (const form of [encodeURIComponent(text), JSON.stringify(text).slice(1, -1)]) keepSecret(form);
  return keepSecret(text);
}

const REDIS_PASSWORD = secret('redis/pass"word-change-me');
const WRONG_PASSWORD = secret('wrong@password-change-me');
const DATASET_PASSWORD = secret('dataset:password-change-me');
const DATASET_TOKEN = secret('dataset+token-change-me');

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

  it('are not logged if the Redis password is right and then changes, but the reason is', async () => {
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
    expect(program.stdout).to.match(/"level":[45]0,.*"msg":"Redis responds: WRONGPASS/);
    await program.prints(/Redis responds again/, 10_000);
    expect(await program.stop()).to.equal(0);
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
  });

  it('are not printed by commands that fail', async () => {
    answer = (_request, response) => response.writeHead(401).end();
    const commands: Parameters<typeof start>[] = [
      ['dev/start', wrongRedis()],
      ['dev/start', { DATASET_URL: secretDataset() }],
      ['cli/rebuild', {}, ['--dataset', secretDataset()]],
      ['cli/rollback', wrongRedis()],
    ];
    const ended = commands.map(async ([script, env, args]) => {
      const program = start(script, env, args);
      expect(await program.exit(), script).to.equal(1);
      expect(program.stderr.trim().split('\n'), script).to.have.length(1);
    });
    await Promise.all(ended);
  });
});
