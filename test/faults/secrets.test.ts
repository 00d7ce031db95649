import { expect } from 'chai';
import { concurrentTests } from '../support/concurrent-tests.js';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { datasetFile, packagesNamed, toCsv, type DatasetFile } from '../support/datasets.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { keepSecret } from '../support/secret-scanner.js';
import { isolatedRedis, type IsolatedRedis } from '../support/isolated-redis.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import {
  BYPASS_SECRET,
  newSlug,
  REBUILD,
  REBUILD_SECRET,
  request,
  removeIndices,
} from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const LEVELS = ['info', 'trace'];

const PROGRAMS_AT_ONCE = 3;

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

describe('Secrets', function () {
  this.timeout(60_000);
  const slugs: string[] = [];
  let dataset: DatasetFile;
  let redis: IsolatedRedis;
  let web: DatasetServer;
  /** How the dataset server responds next. */
  let answer: Parameters<typeof datasetServer>[0];

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    await engines();
    dataset = await datasetFile(toCsv(packagesNamed(['alpha', 'beta'])));
    redis = await isolatedRedis();
    await redis.configure({ requirepass: REDIS_PASSWORD });
    await redis.client.auth(REDIS_PASSWORD);
    web = await datasetServer((incoming, response) => answer(incoming, response));
  });

  after(async () => {
    await web.close();
    await redis.stop();
    await dataset.remove();
    await removeIndices(slugs);
  });

  function withPassword(url: string, password: string, user = ''): string {
    return url.replace('://', `://${user}:${encodeURIComponent(password)}@`);
  }

  async function environment(env: Record<string, string>): Promise<Record<string, string>> {
    const { elasticsearch } = await engines();
    const slug = newSlug();
    slugs.push(slug);
    return {
      ELASTICSEARCH_URL: elasticsearch.url,
      REDIS_URL: withPassword(redis.url, REDIS_PASSWORD),
      REGISTRY_SLUG: slug,
      DATASET_URL: dataset.url,
      REBUILD_SECRET,
      BYPASS_SECRET,
      PORT: '0',
      ...env,
    };
  }

  for (const level of LEVELS) {
    describe(`at log level ${level}`, () => {
      it('are not logged if the Redis password is right', async () => {
        const program = new SpawnedCli('src/main.ts', await environment({ LOG_LEVEL: level }));
        const url = await program.url();
        await waitFor(async () => (await request(`${url}/health`)).status === 200, 'the service', 20_000);
        expect((await request(`${url}/stats`)).status).to.equal(200);
        await waitFor(async () => (await request(url + REBUILD)).status === 202, 'the first rebuild to end');
        expect((await request(`${url}/get-bypass?secret=${BYPASS_SECRET}`)).status).to.equal(200);
        expect(await program.stop()).to.equal(0);
        expectNoSecrets(program);
      });

      it('are not logged if the Redis password changes', async () => {
        const program = new SpawnedCli('src/main.ts', await environment({ LOG_LEVEL: level }));
        await program.url();
        await redis.configure({ requirepass: 'another-change-me' });
        try {
          await waitFor(async () => {
            // Redis does not check the password of open connections again.
            await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
            return program.stdout.includes('WRONGPASS');
          }, 'the wrong password in the log');
        } finally {
          await redis.configure({ requirepass: REDIS_PASSWORD });
        }
        await program.prints(/Redis responds again/, 10_000);
        expect(await program.stop()).to.equal(0);
        expectNoSecrets(program);
      });

      it('are not logged if the Redis password is wrong, but the reason is', async () => {
        const env = await environment({
          LOG_LEVEL: level,
          REDIS_URL: withPassword(redis.url, WRONG_PASSWORD, 'default'),
        });
        const program = new SpawnedCli('src/main.ts', env);
        const url = await program.url();
        expect((await request(`${url}/debug-ip`)).status).to.equal(200);
        expect((await request(`${url}/stats`)).status).to.equal(503);
        expect((await request(url + REBUILD)).status).to.equal(503);
        expect(await program.stop()).to.equal(0);
        expect(program.stdout)
          .to.match(/"msg":"Redis does not respond/)
          .and.to.contain('WRONGPASS');
        expectNoSecrets(program);
      });

      const broken: [what: string, listener: typeof answer, reason: RegExp][] = [
        ['returns 403', (_request, response) => response.writeHead(403).end(), /responded with 403/],
        [
          'redirects to an unreachable address',
          (incoming, response) =>
            response
              .writeHead(302, { Location: `http://u:${DATASET_PASSWORD}@127.0.0.1:1${incoming.url}` })
              .end(),
          /ECONNREFUSED/,
        ],
        ['disconnects', (incoming) => incoming.socket.destroy(), /the dataset could not be downloaded/],
      ];
      for (const [what, listener, reason] of broken) {
        it(`are not logged if the dataset server ${what}`, async () => {
          answer = listener;
          const url = withPassword(web.url, DATASET_PASSWORD, 'reader');
          const env = await environment({
            LOG_LEVEL: level,
            DATASET_URL: `${url}?token=${encodeURIComponent(DATASET_TOKEN)}`,
          });
          const program = new SpawnedCli('src/main.ts', env);
          await program.prints(/the rebuild failed/, 30_000);
          const rebuilt = await request((await program.url()) + REBUILD);
          expect(rebuilt.text).not.to.contain('change-me');
          expect(await program.stop()).to.equal(0);
          expect(program.stdout).to.match(reason);
          expectNoSecrets(program);
        });
      }
    });
  }

  describe('on standard error', () => {
    const DATASET = () =>
      `${withPassword(web.url, DATASET_PASSWORD, 'reader')}?token=${encodeURIComponent(DATASET_TOKEN)}`;

    const withWrongPassword = () => ({ REDIS_URL: withPassword(redis.url, WRONG_PASSWORD) });

    const commands: [
      what: string,
      script: string,
      env: () => Record<string, string>,
      args: () => string[],
    ][] = [
      ['npm start with a wrong Redis password', 'src/dev/start.ts', withWrongPassword, () => []],
      ['npm start without its dataset', 'src/dev/start.ts', () => ({ DATASET_URL: DATASET() }), () => []],
      [
        'npm run rebuild without its dataset',
        'src/cli/rebuild.ts',
        () => ({}),
        () => ['--dataset', DATASET()],
      ],
      ['npm run rollback with a wrong Redis password', 'src/cli/rollback.ts', withWrongPassword, () => []],
      [
        'npm run kibana:setup with a wrong key',
        'src/cli/kibana-setup.ts',
        () => ({ KIBANA_URL: new URL(web.url).origin, KIBANA_API_KEY: KIBANA_KEY }),
        () => [],
      ],
    ];
    const itConcurrently = concurrentTests(PROGRAMS_AT_ONCE);
    for (const [what, script, env, args] of commands) {
      for (const level of ['', 'trace']) {
        itConcurrently(`are not printed by ${what}, at ${level || 'the default'} level`, async () => {
          answer = (_request, response) => response.writeHead(401).end();
          const program = new SpawnedCli(script, await environment({ LOG_LEVEL: level, ...env() }), args());
          expect(await program.exit()).to.equal(1);
          expect(program.stderr.trim().split('\n')).to.have.length(1);
          expectNoSecrets(program);
        });
      }
    }
  });
});
