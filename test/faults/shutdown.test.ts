import { readdir } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { datasetServer } from '../support/dataset-server.js';
import { bundledPackages } from '../support/datasets.js';
import { isBulk, isMerge, type Matches } from '../support/engine-proxy.js';
import { useProxiedService } from '../support/proxied-service.js';
import { getRequest, useConnections } from '../support/raw-connection.js';
import { endLock, spawnReplica } from '../support/replicas.js';
import { newFolder } from '../support/run-folder.js';
import { newSlug, REBUILD, request } from '../support/service.js';
import { SpawnedCli, type Exit } from '../support/spawn-cli.js';
import { waitFor } from '../support/wait-for.js';

/** Time between SIGTERM and SIGKILL of a container engine, in milliseconds. */
const GRACE_MS = 10_000;

/** The start of a request that is never completed. */
const HALF_A_REQUEST = 'GET /ping HTTP/1.1\r\nHost: registry.example\r\n';

describe('A server that receives SIGTERM', function () {
  this.timeout(120_000);
  const suite = useProxiedService(() => bundledPackages().slice(0, 500));
  const programs: SpawnedCli[] = [];
  const connections = useConnections(() => suite.service.url);

  /** Of the temporary files of replicas. */
  let temporary: string;
  before(() => (temporary = newFolder()));
  after(() => {
    for (const program of programs) program.signal('SIGKILL');
  });

  /** Starts another replica of the suite's service in a child process. */
  function replica(): SpawnedCli {
    const env = { ELASTICSEARCH_URL: suite.proxy.url, CACHE_MAX_BYTES: '0', TMPDIR: temporary };
    const program = spawnReplica(suite, env);
    programs.push(program);
    return program;
  }

  /** Starts a replica and connections that send these bytes, and waits until it has received them. */
  async function replicaWith(sent: readonly string[]) {
    const program = replica();
    const url = await program.url();
    const clients = await Promise.all(sent.map((bytes) => connections.open(bytes, true, url)));
    await pause(500);
    return { program, clients };
  }

  /** Starts a replica and a rebuild, and waits for a request. */
  async function rebuilding(...rule: Parameters<typeof suite.proxy.hold>) {
    const program = replica();
    const url = (await program.url()) + REBUILD;
    const hold = suite.proxy.hold(...rule);
    expect((await request(`${url}&force=true`)).status).to.equal(202);
    await hold.arrived;
    return { program, hold };
  }

  /** Sends SIGTERM. @returns the exit code, and the time until the exit in milliseconds. */
  async function stop(program: SpawnedCli): Promise<{ code: Exit; ms: number }> {
    const began = performance.now();
    const code = await program.stop();
    return { code, ms: performance.now() - began };
  }

  /** Starts a replica with a search in flight, and sends it SIGTERM. */
  async function stopping() {
    const program = replica();
    const url = await program.url();
    const held = suite.proxy.hold('before', (_method, path) => path.includes('_msearch'));
    const answer = request(`${url}/search?q=lib`).catch(() => undefined);
    await held.arrived;
    program.signal('SIGTERM');
    await program.prints(/"msg":"stopping"/, 5000);
    return { program, url, held, answer };
  }

  it('completes requests in flight', async () => {
    const { program, url, held, answer } = await stopping();
    expect(await request(`${url}/ping`).catch(() => 'refused')).to.equal('refused');
    held.release();
    const response = await answer;
    expect(response?.status).to.equal(200);
    expect(response?.body.count).to.be.greaterThan(0);
    expect(response?.headers.get('Connection')).to.equal('close');
    expect(await program.exit()).to.equal(0);
    expect(program.stdout).to.contain('"msg":"stopped"');
  });

  it('closes idle connections at once', async () => {
    const { program, clients } = await replicaWith([getRequest('/ping'), getRequest('/ping')]);
    const { code, ms } = await stop(program);
    expect(code).to.equal(0);
    expect(ms).to.be.lessThan(1000);
    await Promise.all(clients.map(({ closed }) => closed));
    expect(clients.map(({ error }) => error)).to.deep.equal([undefined, undefined]);
  });

  it('closes connections without a complete request within the grace period', async () => {
    const { program } = await replicaWith(['', HALF_A_REQUEST, getRequest('/ping') + HALF_A_REQUEST]);
    const { code, ms } = await stop(program);
    expect(code).to.equal(0);
    expect(ms).to.be.lessThan(GRACE_MS);
  });

  it('stops gracefully during startup', async () => {
    const silent = await datasetServer(() => undefined);
    const program = new SpawnedCli('main', {
      PORT: '0',
      ELASTICSEARCH_URL: new URL(silent.url).origin,
      REGISTRY_SLUG: newSlug(),
    });
    programs.push(program);
    await program.prints(/REDIS_URL is not set/, 20_000);
    const { code, ms } = await stop(program);
    await silent.close();
    expect(code).to.equal(0);
    expect(ms).to.be.lessThan(GRACE_MS);
    expect(program.stdout).to.contain('"msg":"stopped"');
  });

  for (const [what, when, matches] of [
    ['that is loading', 'after', isBulk],
    ['whose merge does not finish', 'before', isMerge],
  ] as [string, 'before' | 'after', Matches][]) {
    it(`stops a rebuild ${what}`, async () => {
      const served = await suite.service.indices();
      const { program, hold } = await rebuilding(when, matches);
      const { code, ms } = await stop(program);
      hold.release();
      expect(code).to.equal(0);
      expect(ms).to.be.lessThan(GRACE_MS / 2);
      expect(await suite.service.indices()).to.deep.equal(served);
      expect(await readdir(temporary)).to.deep.equal([]);
      expect((await suite.service.rebuild()).status).to.equal(202);
    });
  }

  it('exits within the grace period despite an Elasticsearch that hangs', async () => {
    const served = await suite.service.indices();
    const { program, hold } = await rebuilding('after', isBulk);
    const frozen = suite.proxy.hang();
    const { code, ms } = await stop(program);
    frozen.release();
    hold.release();
    // Leaves the cleanup to the next rebuild.
    expect(code).to.equal(1);
    expect(ms).to.be.lessThan(GRACE_MS);
    expect(program.stdout).to.contain('stopped before cleanup was complete');
    expect(await readdir(temporary)).to.deep.equal([]);
    expect(await suite.service.indices()).to.have.length(served.length + 1);
    await endLock(suite.service);
    const isBack = async () => (await suite.service.get('/health')).status === 200;
    await waitFor(isBack, 'the other replica to see that Elasticsearch responds');
    expect((await suite.service.rebuild()).status).to.equal(202);
    expect(await suite.service.indices()).to.have.length(2);
  });
});
