import { rejects } from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import getPort from 'get-port';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { datasetFile, packagesNamed, toCsv, type DatasetFile } from '../support/datasets.js';
import { EngineProxy, type Hold } from '../support/engine-proxy.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { keepSecret } from '../support/secret-scanner.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { newSlug, request, removeIndices } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('On startup,', function () {
  this.timeout(60_000);
  const slugs: string[] = [];
  let dataset: DatasetFile;
  let taken: Server;
  let takenPort: string;
  let webSite: DatasetServer;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    await engines();
    dataset = await datasetFile(toCsv(packagesNamed(['alpha', 'beta'])));
    taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    webSite = await datasetServer((_request, response) => response.end('<!DOCTYPE html>\n<p>Hello'));
    takenPort = String((taken.address() as AddressInfo).port);
  });

  after(async () => {
    taken.close();
    await webSite.close();
    await dataset.remove();
    await removeIndices(slugs);
  });

  async function environment(): Promise<Record<string, string>> {
    const { elasticsearch, redis } = await engines();
    const slug = newSlug();
    slugs.push(slug);
    return {
      ELASTICSEARCH_URL: elasticsearch.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: slug,
      DATASET_URL: dataset.url,
      PORT: '0',
    };
  }

  describe('node dist/main.js', () => {
    const refused: [why: string, env: Record<string, string>, line: RegExp][] = [
      [
        'ELASTICSEARCH_URL is missing',
        {},
        /^ELASTICSEARCH_URL is required, such as http:\/\/127\.0\.0\.1:9200$/,
      ],
      [
        'a variable is malformed',
        { ELASTICSEARCH_URL: 'http://127.0.0.1:9200', PORT: 'http' },
        /^PORT must be a whole number from 0 to 65535$/,
      ],
      [
        'the user of Elasticsearch is not percent-encoded',
        { ELASTICSEARCH_URL: `http://u%zz:${keepSecret('startup-change-me')}@127.0.0.1:9200` },
        /^ELASTICSEARCH_URL must be [^\n]+$/,
      ],
      [
        'the host of Redis is not percent-encoded',
        { ELASTICSEARCH_URL: 'http://127.0.0.1:9200', REDIS_URL: 'redis://:startup-change-me@h%zz:6379' },
        /^REDIS_URL must have [^\n]+$/,
      ],
      [
        'an API key has a line break',
        { ELASTICSEARCH_URL: 'http://127.0.0.1:9200', ELASTICSEARCH_API_KEY: 'startup-change-me\n' },
        /^ELASTICSEARCH_API_KEY must be [^\n]+$/,
      ],
      [
        'the path of the dataset is not percent-encoded',
        { ELASTICSEARCH_URL: 'http://127.0.0.1:9200', DATASET_URL: 'file:///startup-change-me%2F' },
        /^DATASET_URL must have [^\n]+$/,
      ],
      [
        'HOST has no address',
        {
          ELASTICSEARCH_URL: 'http://127.0.0.1:1',
          HOST: 'no-such-host.invalid',
          LOG_LEVEL: 'silent',
        },
        /^the service cannot listen, check PORT, METRICS_PORT and HOST: getaddrinfo [^\n]+$/,
      ],
    ];
    for (const [why, env, line] of refused) {
      it(`exits with one line if ${why}`, async () => {
        const program = new SpawnedCli('src/main.ts', { PORT: '0', ...env });
        expect(await program.exit()).to.equal(1);
        expect(program.stderr.trimEnd()).to.match(line);
        expect(program.stdout).to.equal('');
      });
    }

    it('exits with one line if its port is taken', async () => {
      const program = new SpawnedCli('src/main.ts', {
        ...(await environment()),
        PORT: takenPort,
        LOG_LEVEL: 'silent',
      });
      expect(await program.exit()).to.equal(1);
      expect(program.stderr.trimEnd()).to.match(
        /^the service cannot listen, check PORT, METRICS_PORT and HOST: .*EADDRINUSE[^\n]*$/,
      );
    });

    it('serves, logs JSON lines, and stops gracefully on SIGTERM', async () => {
      const program = new SpawnedCli('src/main.ts', await environment());
      const url = await program.url();
      await waitFor(
        async () => (await request(`${url}/health`)).status === 200,
        'the service to be ready',
        20_000,
      );
      expect((await request(`${url}/search?q=alpha`)).body.count).to.equal(1);
      expect(await program.stop()).to.equal(0);
      const messages = program.stdout
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { msg: string }).msg);
      expect(messages.at(-1)).to.equal('stopped');
    });

    describe('before the first response of Elasticsearch', () => {
      let proxy: EngineProxy;
      let program: SpawnedCli;
      let look: Hold;
      let port: number;

      beforeEach(async () => {
        proxy = await EngineProxy.start((await engines()).elasticsearch.url);
        look = proxy.hold('before', () => true);
        port = await getPort();
        const env = { ...(await environment()), ELASTICSEARCH_URL: proxy.url, PORT: String(port) };
        program = new SpawnedCli('src/main.ts', env);
        await look.arrived;
      });

      afterEach(() => proxy.close());

      it('accepts no connections', async () => {
        await rejects(fetch(`http://127.0.0.1:${port}/ping`));
        look.release();
        expect((await request(`${await program.url()}/ping`)).status).to.equal(200);
        await program.stop();
      });

      it('stops on SIGTERM', async () => {
        program.signal('SIGTERM');
        look.release();
        expect(await program.exit()).to.equal(0);
        expect(program.stdout).to.contain('"msg":"stopped"');
      });
    });
  });

  describe('npm start', () => {
    it('uses the given addresses, loads the snapshot, and prints the address of the API', async () => {
      const env = await environment();
      const program = new SpawnedCli('src/dev/start.ts', env);
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
      const { elasticsearch } = await engines();
      expect((await fetch(elasticsearch.url)).status, 'the given Elasticsearch keeps running').to.equal(200);

      const again = new SpawnedCli('src/dev/start.ts', env);
      await again.prints(/The API is at/, 10_000);
      expect(again.stdout, 'no reload').not.to.contain('Snapshot:');
      await again.stop();
    });

    type Environment = Record<string, string>;
    const refused: [why: string, env: () => Environment | Promise<Environment>, line: RegExp][] = [
      [
        'its port is taken',
        () => ({ PORT: takenPort }),
        /^port \d+ of 127\.0\.0\.1 is taken by another program: .* PORT=0 npm start$/,
      ],
      [
        'the port of the metrics is taken',
        () => ({ METRICS_PORT: takenPort }),
        /^port \d+ of 127\.0\.0\.1 is taken by another program: .* METRICS_PORT=0 npm start$/,
      ],
      [
        'HOST is not an address of this machine',
        () => ({ HOST: '203.0.113.1' }),
        /^the service cannot listen \(.*EADDRNOTAVAIL.*\): set PORT and HOST to a port and an address of this machine$/,
      ],
      ['a variable is malformed', () => ({ INDEX_SHARDS: 'many' }), /^INDEX_SHARDS must be a whole number/],
      [
        'the given Elasticsearch does not respond',
        () => ({ ELASTICSEARCH_URL: `http://127.0.0.1:1` }),
        /^Elasticsearch does not respond at ELASTICSEARCH_URL \(connect ECONNREFUSED 127\.0\.0\.1:1\): start it/,
      ],
      [
        'something else responds at ELASTICSEARCH_URL',
        () => ({ ELASTICSEARCH_URL: webSite.url }),
        /^ELASTICSEARCH_URL points to another product: set it to an Elasticsearch of version 9$/,
      ],
      [
        'the given Redis does not respond',
        () => ({ REDIS_URL: 'redis://127.0.0.1:1' }),
        /^Redis does not respond at REDIS_URL \(connect ECONNREFUSED 127\.0\.0\.1:1\): start it/,
      ],
      [
        'something else responds at REDIS_URL',
        () => ({ REDIS_URL: `redis://${new URL(webSite.url).host}` }),
        /^Redis does not respond at REDIS_URL \(.+\): start it/,
      ],
      [
        'the given Redis has no such database',
        async () => ({ REDIS_URL: `${(await engines()).redis.url}/99` }),
        /^Redis does not respond at REDIS_URL \(ERR DB index is out of range\): start it, or correct the address$/,
      ],
      [
        'the dataset cannot be loaded',
        () => ({ DATASET_URL: 'file:///no/such/file.csv' }),
        /^the snapshot could not be loaded: there is no file at the path in DATASET_URL$/,
      ],
    ];
    for (const [why, env, line] of refused) {
      it(`exits with one line if ${why}`, async () => {
        const program = new SpawnedCli('src/dev/start.ts', {
          ...(await environment()),
          ...(await env()),
        });
        expect(await program.exit()).to.equal(1);
        expect(program.stderr.trim()).to.match(line);
        expect(program.stderr.trim().split('\n')).to.have.length(1);
      });
    }
  });
});
