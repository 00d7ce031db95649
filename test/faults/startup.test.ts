import { rejects } from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { expect } from 'chai';
import getPort from 'get-port';
import { run } from '../../dev/run.js';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { datasetFile, packagesNamed, toCsv, type DatasetFile } from '../support/datasets.js';
import { listen } from '../support/listen.js';
import { listServer, LOGIN_PAGE, type ListServer } from '../support/list-server.js';
import { EngineProxy } from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { inShell, runCommand, SpawnedCli } from '../support/spawn-cli.js';
import { keepSecret } from '../support/secret-scanner.js';
import { inRunFolder } from '../support/run-folder.js';
import { removeRegistries } from '../support/registries.js';
import { environmentOf, newSlug, request } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

type Environment = Record<string, string>;

describe('On startup,', function () {
  this.timeout(120_000);
  const slugs: string[] = [];
  let dataset: DatasetFile;
  let webSite: DatasetServer;
  /** The address of a web site, whose port is taken. */
  let address: URL;

  before(async () => {
    dataset = await datasetFile(toCsv(packagesNamed(['alpha', 'beta'])));
    webSite = await datasetServer((_request, response) => response.end('<!DOCTYPE html>\n<p>Hello'));
    address = new URL(webSite.url);
  });

  after(async () => {
    await webSite.close();
    await dataset.remove();
    await removeRegistries(slugs);
  });

  function environment(): Environment {
    const slug = newSlug();
    slugs.push(slug);
    return { ...environmentOf(slug), DATASET_URL: dataset.url, PORT: '0' };
  }

  describe('node dist/main.js', () => {
    it('exits with the reason in one line if it cannot start', async () => {
      const cannotListen = 'the service cannot listen, check PORT, METRICS_PORT and HOST:';
      for (const [env, line] of [
        [{ PORT: 'http' }, /^PORT must be a whole number from 0 to 65535$/],
        [{ HOST: 'no-such-host.invalid' }, new RegExp(`^${cannotListen} getaddrinfo [^\\n]+$`)],
        [{ PORT: address.port }, new RegExp(`^${cannotListen} .*EADDRINUSE[^\\n]*$`)],
      ] as [Environment, RegExp][]) {
        const variables = { ...environment(), LOG_LEVEL: 'silent', ...env };
        const { code, stdout, stderr } = await runCommand('main', variables);
        expect(stderr.trimEnd()).to.match(line);
        expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      }
    });

    it('serves and stops without a log that can be written', async () => {
      const file = inRunFolder('log');
      for (const script of [
        'exec "$@" >&-',
        'exec "$@" > /dev/full',
        'exec "$@"',
        `ulimit -f 8; exec "$@" > ${file}`,
      ]) {
        const port = String(await getPort());
        const program = new SpawnedCli(
          'main',
          { ...environment(), PORT: port, LOG_LEVEL: 'debug' },
          [],
          inShell(script),
        );
        const isUp = async () => (await fetch(`http://127.0.0.1:${port}/ping`)).ok;
        await waitFor(() => isUp().catch(() => false), 'the server', 30_000);
        program.closeOutput();
        // Each of them is logged.
        for (let i = 0; i < 100; i++) expect(await isUp()).to.equal(true);
        expect(await program.stop(), script).to.equal(0);
        expect(program.stderr).to.equal('');
      }
      expect((await stat(file)).size).to.equal(8 * 512);
    });

    it('accepts no connections before Elasticsearch responds', async () => {
      const proxy = await EngineProxy.start(engines().elasticsearch.url);
      const first = proxy.hold('before', () => true);
      const port = await getPort();
      const env = { ...environment(), ELASTICSEARCH_URL: proxy.url, PORT: String(port) };
      const program = new SpawnedCli('main', env);
      await first.arrived;
      await rejects(fetch(`http://127.0.0.1:${port}/ping`));
      first.release();
      const url = await program.url();
      // Node would open its inspector, or end.
      for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) program.signal(signal);
      await waitFor(async () => (await request(`${url}/health`)).status === 200, 'the service', 20_000);
      expect((await request(`${url}/search?q=alpha`)).body.count).to.equal(1);
      expect(await program.stop()).to.equal(0);
      expect(program.stderr).to.equal('');
      await proxy.close();
    });
  });

  describe('The health check of the image', () => {
    /** Its exit code. */
    async function check(env: Environment): Promise<number> {
      const dockerfile = await readFile('Dockerfile', 'utf8');
      const [, json = ''] = /^HEALTHCHECK [^[]*CMD (\[.*\])$/m.exec(dockerfile) ?? [];
      const [program = '', ...args] = JSON.parse(json) as string[];
      return run(program, args, { env }).then(
        () => 0,
        (error: unknown) => (error as { code: number }).code,
      );
    }

    it('asks the server at the address that the server itself would listen on', async () => {
      for (const given of [
        { HOST: '127.0.0.77', PORT: '' },
        { HOST: '0.0.0.0', PORT: String(await getPort()) },
        { HOST: '::1', PORT: String(await getPort()) },
      ]) {
        const env = { ...environment(), ...given };
        expect(await check(env)).to.equal(1);
        const program = new SpawnedCli('main', env);
        await program.url();
        expect(await check(env), `${given.HOST}:${given.PORT}`).to.equal(0);
        expect(await program.stop()).to.equal(0);
      }
    });

    it('fails without the right response in time', async () => {
      for (const [response, code] of [
        ['HTTP/1.1 503 Service Unavailable\r\n\r\n', 1],
        ['SSH-2.0-OpenSSH\r\n', 1],
        // The status of `timeout`.
        [undefined, 124],
      ] as const) {
        const server = createServer((socket) => {
          // The check does not read to the end.
          socket.on('error', () => undefined);
          if (response !== undefined) socket.end(response);
        });
        const { port, close } = await listen(server);
        expect(await check({ HOST: '127.0.0.1', PORT: String(port) })).to.equal(code);
        await close();
      }
    });
  });

  describe('npm start', () => {
    const isTaken = (variable: string) =>
      new RegExp(`^port \\d+ of 127\\.0\\.0\\.1 is taken by another program: .* ${variable}=0 npm start$`);

    it('serves from the given addresses until its last response after Ctrl-C', async () => {
      const proxy = await EngineProxy.start(engines().elasticsearch.url);
      const env = { ...environment(), ELASTICSEARCH_URL: proxy.url, REGISTRY_SOURCE: "registry.example's" };
      const program = new SpawnedCli('dev/start', env);
      const printed = /The API is at (\S+), with 2 packages of registry\.example's\./;
      const [, url] = await program.prints(printed, 30_000);
      // npm forwards the Ctrl-C that the terminal has already sent to both, so there are two signals. The second one
      // must not find a process that has closed everything: it would be killed.
      const search = proxy.hold('before', (_method, path) => path.includes('_msearch'));
      const answer = request(`${url}/search?q=beta`);
      await search.arrived;
      program.signal('SIGINT');
      program.signal('SIGINT');
      search.release();
      expect((await answer).body.count).to.equal(1);
      expect(await program.exit()).to.equal(0);
      expect(program.stdout).to.contain('Stopping');
      expect(program.stderr).to.equal('');
      await proxy.close();
    });

    describe('with a list that needs settings', () => {
      const authorization = keepSecret('Bearer hush-at-startup');
      let origin: ListServer;
      let shown: Environment;
      let program: SpawnedCli;

      before(async () => {
        origin = await listServer((_url, headers) =>
          headers.authorization === authorization ? '{"all":[{"id":"a"},{"id":"b"}]}' : LOGIN_PAGE,
        );
        shown = {
          ...environment(),
          DATASET_URL: `${origin.origin}/list`,
          DATASET_FORMAT: 'json',
          DATASET_JSON: 'items=all name=id',
          PACKAGE_URL_TEMPLATE: 'https://registry.example/{+name}',
          NO_PROXY: '127.0.0.1',
          REGISTRY_SOURCE: "registry.example's",
        };
        program = new SpawnedCli('dev/start', { ...shown, DATASET_AUTHORIZATION: authorization });
        await program.prints(/as here: /, 30_000);
      });

      after(async () => {
        await program.stop('SIGINT');
        await origin.close();
      });

      it('prints every variable that the other commands need', async () => {
        const [, line = '', hidden] = await program.prints(/(export .*)\n {2}# as here: (.*)\n/, 30_000);
        expect(hidden).to.equal('DATASET_AUTHORIZATION');
        const { stdout } = await runCommand('', {}, [], () => ['sh', '-c', `${line}; env`]);
        const lines = Object.entries(shown).map(([name, value]) => `${name}=${value}`);
        expect(stdout.split('\n')).to.include.members(lines);
      });

      it('lets commands name the variables that are missing', async () => {
        const given: Environment = { ...shown, DATASET_AUTHORIZATION: authorization };
        const rebuild = (...without: string[]) =>
          runCommand(
            'cli/rebuild',
            Object.fromEntries(Object.entries(given).filter(([name]) => !without.includes(name))),
          );
        expect(await rebuild()).to.include({ code: 0, stderr: '' });
        const names = ['DATASET_FORMAT', 'DATASET_JSON', 'PACKAGE_URL_TEMPLATE'];
        const { code, stderr } = await rebuild(...names);
        expect(code).to.equal(2);
        expect(stderr).to.equal(
          `${names.join(', ')} must be set as for the server, whose snapshot was built with it, or to nothing to build without it\n`,
        );
        const unauthorized = await rebuild('DATASET_AUTHORIZATION');
        expect(unauthorized.code).to.equal(1);
        expect(unauthorized.stderr).to.match(/expected JSON, but this is an HTML or XML page\n$/);
      });
    });

    it('says that the served snapshot was built from another list', async () => {
      const env = environment();
      const first = new SpawnedCli('dev/start', env);
      await first.prints(/The API is at/, 30_000);
      expect(await first.stop('SIGINT')).to.equal(0);

      const again = new SpawnedCli('dev/start', {
        ...env,
        PACKAGE_URL_TEMPLATE: 'https://other.example/{name}',
      });
      await again.prints(/with 2 packages/, 30_000);
      expect(await again.stop('SIGINT')).to.equal(0);
      expect(again.stdout).to.contain(
        'The served snapshot was built with another PACKAGE_URL_TEMPLATE: npm run rebuild builds a new one.',
      );
    });

    it('exits with the reason in one line if it cannot start', async () => {
      for (const [env, line] of [
        [{ PORT: address.port }, isTaken('PORT')],
        [
          { HOST: '203.0.113.1' },
          /^the service cannot listen \(.*EADDRNOTAVAIL.*\): set PORT and HOST to a port and an address of this machine$/,
        ],
        [
          { REDIS_URL: 'redis://127.0.0.1:1' },
          /^Redis does not respond at REDIS_URL \(connect ECONNREFUSED 127\.0\.0\.1:1\): start it, or correct the address$/,
        ],
        [
          { ELASTICSEARCH_URL: 'http://127.0.0.1:1' },
          /^Elasticsearch does not respond at ELASTICSEARCH_URL \(connect ECONNREFUSED 127\.0\.0\.1:1\): start it/,
        ],
        [
          { DATASET_URL: 'file:///no/such/file.csv' },
          /^the snapshot could not be loaded: there is no file at the path of the dataset$/,
        ],
      ] as [Environment, RegExp][]) {
        const { code, stderr } = await runCommand('dev/start', { ...environment(), ...env });
        expect(stderr.trim()).to.match(line);
        expect(stderr.trim().split('\n')).to.have.length(1);
        expect(code).to.equal(1);
      }
    });
  });
});
