import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { bundledPackages, datasetFile, packagesNamed, toCsv, type DatasetFile } from '../support/datasets.js';
import { EngineProxy } from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { rawRequest } from '../support/raw-request.js';
import { newSlug, REBUILD, REBUILD_SECRET, request, startService, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** Time between SIGTERM and SIGKILL of a container engine, in milliseconds. */
const GRACE_MS = 10_000;

/** The start of a request that is never completed. */
const HALF_A_REQUEST = 'GET /ping HTTP/1.1\r\nHost: registry.example\r\n';

describe('A server that receives SIGTERM', function () {
  this.timeout(90_000);
  const suite = useService(() => bundledPackages().slice(0, 1000));
  let large: DatasetFile;
  let proxy: EngineProxy;
  /** Folder for its temporary files. */
  let temporary: string;

  before(async () => {
    large = await datasetFile(toCsv(bundledPackages()));
    proxy = await EngineProxy.start((await engines()).elasticsearch.url);
    temporary = await mkdtemp(join(tmpdir(), 'package-registry-search-shutdown-'));
  });
  after(async () => {
    await proxy.close();
    await large.remove();
    await rm(temporary, { recursive: true, force: true });
  });

  /** Starts another replica of the suite's service in a child process. */
  async function replica(): Promise<{ program: SpawnedCli; url: string }> {
    const { redis } = await engines();
    const program = new SpawnedCli('src/main.ts', {
      PORT: '0',
      ELASTICSEARCH_URL: proxy.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: suite.service.slug,
      DATASET_URL: large.url,
      REBUILD_SECRET,
      CACHE_MAX_BYTES: '0',
      TMPDIR: temporary,
    });
    return { program, url: await program.url() };
  }

  /** Starts a replica and a rebuild, and waits for this phase. */
  async function rebuilding(phase: string): Promise<SpawnedCli> {
    const { program, url } = await replica();
    expect((await request(`${url}${REBUILD}&force=true`)).status).to.equal(202);
    await waitFor(async () => (await request(url + REBUILD)).body.phase === phase, phase, 30_000);
    return program;
  }

  /** Sends an incomplete request. @returns its end, when the server closes the connection. */
  async function neverEnding(url: string): Promise<{ end: Promise<unknown> }> {
    const end = rawRequest(url, [HALF_A_REQUEST]);
    // Until the server has received it.
    await pause(500);
    return { end };
  }

  /** Sends SIGTERM. @returns the exit code, and the time until the exit in milliseconds. */
  async function stop(program: SpawnedCli): Promise<{ code: number | null; ms: number }> {
    const began = performance.now();
    const code = await program.stop();
    return { code, ms: performance.now() - began };
  }

  /** Temporary files of the service, without those of tsx. */
  async function temporaryFiles(): Promise<string[]> {
    return (await readdir(temporary)).filter((name) => name.startsWith('package-registry-search-'));
  }

  /** Asserts that nothing is left of a rebuild, and that another replica can start one at once. */
  async function expectCleanedUp(served: string[]): Promise<void> {
    expect(await suite.service.indices()).to.deep.equal(served);
    expect(await temporaryFiles()).to.deep.equal([]);
    expect((await suite.service.rebuild()).status).to.equal(202);
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
  }

  it('completes requests in flight, accepts no more, and exits with 0', async () => {
    const { program, url } = await replica();
    const held = proxy.hold('before', (_method, path) => path.includes('_msearch'));
    const answer = request(`${url}/search?q=lib`);
    await held.arrived;
    program.signal('SIGTERM');
    await program.prints(/"msg":"stopping"/, 1000);
    expect(await request(`${url}/ping`).catch(() => 'refused')).to.equal('refused');
    held.release();
    const { status, headers, body } = await answer;
    expect(status).to.equal(200);
    expect(body.count).to.be.greaterThan(0);
    expect(headers.get('Connection')).to.equal('close');
    expect(await program.exit()).to.equal(0);
    expect(program.stdout).to.contain('"msg":"stopped"');
  });

  it('exits within the grace period despite an incomplete request', async () => {
    const { program, url } = await replica();
    const { end } = await neverEnding(url);
    const { code, ms } = await stop(program);
    expect(code).to.equal(0);
    expect(ms).to.be.within(GRACE_MS / 2, GRACE_MS);
    await end;
  });

  it('exits at once on a second signal', async () => {
    const { program, url } = await replica();
    const { end } = await neverEnding(url);
    program.signal('SIGTERM');
    await program.prints(/"msg":"stopping"/, 1000);
    const { code, ms } = await stop(program);
    expect(code, 'killed by the signal').to.equal(null);
    expect(ms).to.be.lessThan(2000);
    await end;
  });

  it('stops gracefully during startup', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const program = new SpawnedCli('src/main.ts', {
      PORT: '0',
      ELASTICSEARCH_URL: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
      REGISTRY_SLUG: newSlug(),
    });
    try {
      await program.prints(/REDIS_URL is not set/, 20_000);
      const { code, ms } = await stop(program);
      expect(code).to.equal(0);
      expect(ms).to.be.lessThan(GRACE_MS);
      expect(program.stdout).to.contain('"msg":"stopped"');
    } finally {
      silent.close();
    }
  });

  it('stops a rebuild that is loading, and cleans up', async () => {
    const served = await suite.service.indices();
    const { code, ms } = await stop(await rebuilding('loading'));
    expect(code).to.equal(0);
    expect(ms).to.be.lessThan(GRACE_MS / 2);
    await expectCleanedUp(served);
  });

  it('stops a rebuild whose merge does not finish, and cleans up', async () => {
    const served = await suite.service.indices();
    const merge = proxy.hold('before', (_method, path) => path.includes('_forcemerge'));
    const program = await rebuilding('merging');
    await merge.arrived;
    const { code, ms } = await stop(program);
    merge.release();
    expect(code).to.equal(0);
    expect(ms).to.be.lessThan(GRACE_MS / 2);
    await expectCleanedUp(served);
  });

  it('does not wait for a hanging Elasticsearch, reports it, and leaves the cleanup to the next rebuild', async () => {
    const served = await suite.service.indices();
    const program = await rebuilding('loading');
    const { elasticsearch } = await engines();
    await elasticsearch.pause();
    try {
      const { code, ms } = await stop(program);
      expect(code).to.equal(1);
      expect(ms).to.be.lessThan(GRACE_MS);
      expect(program.stdout).to.contain('stopped before cleanup was complete');
    } finally {
      await elasticsearch.resume();
    }
    expect(await temporaryFiles()).to.deep.equal([]);
    expect(await suite.service.indices()).to.have.length(served.length + 1);
    await waitFor(async () => (await suite.service.get(REBUILD)).status === 202, 'the lock to end', 20_000);
    await suite.service.idle();
    expect(await suite.service.indices()).to.have.length(2);
  });
});

describe('A server that stops', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['alpha']));

  it('completes requests in flight, with Connection: close', async () => {
    const { elasticsearch } = await engines();
    const proxy = await EngineProxy.start(elasticsearch.url);
    const replica = await startService({ ELASTICSEARCH_URL: proxy.url }, suite.service.slug);
    const hold = proxy.hold('before', (_method, path) => path.includes('_msearch'));
    const answer = replica.get('/search?q=alpha');
    await hold.arrived;
    const stopped = replica.stop();
    hold.release();
    const { status, headers } = await answer;
    expect(status).to.equal(200);
    expect(headers.get('Connection')).to.equal('close');
    await stopped;
    await proxy.close();
  });
});
