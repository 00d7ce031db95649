import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import getPort from 'get-port';
import { run } from '../../src/dev/run.js';
import { checkElasticsearch, checkRedis } from '../../src/clients/connection-check.js';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { datasetFile, packagesNamed, toCsv, type DatasetFile } from '../support/datasets.js';
import { EngineProxy } from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { runCommand, SpawnedCli } from '../support/spawn-cli.js';
import { environmentOf, newSlug, request, removeRegistries } from '../support/service.js';
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
    it('exits with one line if it cannot start', async () => {
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

    it('exits with one line if its log cannot be written', async () => {
      const full = run('sh', ['-c', `exec ${process.execPath} dist/main.js > /dev/full`], {
        env: environment(),
      });
      const message = 'the log cannot be written to standard output: ENOSPC: no space left on device, write';
      await rejects(full, (error: { code: number; stderr: string }) => {
        expect(error).to.include({ code: 1, stderr: `${message}\n` });
        return true;
      });
    });

    it('accepts no connections before Elasticsearch responds, logs JSON lines, and stops on SIGTERM', async () => {
      const proxy = await EngineProxy.start(engines().elasticsearch.url);
      const first = proxy.hold('before', () => true);
      const port = await getPort();
      const env = { ...environment(), ELASTICSEARCH_URL: proxy.url, PORT: String(port) };
      const program = new SpawnedCli('main', env);
      await first.arrived;
      await rejects(fetch(`http://127.0.0.1:${port}/ping`));
      first.release();
      const url = await program.url();
      await waitFor(async () => (await request(`${url}/health`)).status === 200, 'the service', 20_000);
      expect((await request(`${url}/search?q=alpha`)).body.count).to.equal(1);
      expect(await program.stop()).to.equal(0);
      const lines = program.stdout.trimEnd().split('\n');
      const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
      expect(messages.at(-1)).to.equal('stopped');
      await proxy.close();
    });
  });

  describe('npm start', () => {
    it('uses the given addresses, loads the snapshot, and prints the address of the API', async () => {
      const program = new SpawnedCli('dev/start', environment());
      const [, url] = await program.prints(
        /The API is at (\S+), with 2 packages of registry\.example\./,
        30_000,
      );
      expect((await request(`${url}/search?q=alpha`)).body.count).to.equal(1);
      // npm forwards the Ctrl-C that the terminal has already sent to both, so there are two signals.
      program.signal('SIGINT');
      expect(await program.stop('SIGINT')).to.equal(0);
      expect(program.stdout).to.contain('Stopping');
      expect(program.stderr).to.equal('');
    });

    it('exits with one line if it cannot start', async () => {
      const isTaken = (variable: string) =>
        new RegExp(`^port \\d+ of 127\\.0\\.0\\.1 is taken by another program: .* ${variable}=0 npm start$`);
      for (const [env, line] of [
        [{ PORT: address.port }, isTaken('PORT')],
        [{ METRICS_PORT: address.port }, isTaken('METRICS_PORT')],
        [
          { HOST: '203.0.113.1' },
          /^the service cannot listen \(.*EADDRNOTAVAIL.*\): set PORT and HOST to a port and an address of this machine$/,
        ],
        [{ INDEX_SHARDS: 'many' }, /^INDEX_SHARDS must be a whole number/],
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
          /^the snapshot could not be loaded: there is no file at the path in DATASET_URL or --dataset$/,
        ],
      ] as [Environment, RegExp][]) {
        const { code, stderr } = await runCommand('dev/start', { ...environment(), ...env });
        expect(stderr.trim()).to.match(line);
        expect(stderr.trim().split('\n')).to.have.length(1);
        expect(code).to.equal(1);
      }
    });

    it('would exit if something else responds, or Redis has no such database', async () => {
      for (const [check, message] of [
        [
          () => checkElasticsearch({ nodes: [address.origin], apiKey: undefined }),
          /^ELASTICSEARCH_URL points to another product: set it to an Elasticsearch of version 9$/,
        ],
        [
          () => checkRedis(`redis://${address.host}`, 'registry'),
          /^Redis does not respond at REDIS_URL \(.+\): start it/,
        ],
        [
          () => checkRedis(`${engines().redis.url}/99`, 'registry'),
          /^Redis does not have the database in REDIS_URL$/,
        ],
      ] as const) {
        await rejects(check, { name: 'ConnectionCheckError', message });
      }
    });
  });
});
