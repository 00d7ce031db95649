import { readFileSync } from 'node:fs';
import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import getPort from 'get-port';
import { parse } from 'yaml';
import type { Service as Engine } from '../../dev/service.js';
import { ADMINISTRATOR, ADMINISTRATOR_AUTH, makeKeys, type Keys } from '../support/api-keys.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { datasetServer } from '../support/dataset-server.js';
import { bundledPackages } from '../support/datasets.js';
import { EngineProxy } from '../support/engine-proxy.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { isolatedNodes, type IsolatedNodes } from '../support/isolated-nodes.js';
import { spawnReplica } from '../support/replicas.js';
import { keepSecret } from '../support/secret-scanner.js';
import { newSlug, startService, useService } from '../support/service.js';
import { hasStarted, type Probe } from '../support/startup-probe.js';
import { waitFor } from '../support/wait-for.js';

const PACKAGES = bundledPackages().slice(0, 500);

/** The fifteen minutes of the startup probe take at least five seconds, in which the service polls five times. */
const SPEED = 180;

interface Deployment {
  spec: {
    strategy: { rollingUpdate: { maxUnavailable: number } };
    template: { spec: { containers: { startupProbe: Probe }[] } };
  };
}

const MANIFEST = new URL('../../deploy/kubernetes/base/deployment.yaml', import.meta.url);
const { spec } = parse(readFileSync(MANIFEST, 'utf8')) as Deployment;
const probe = spec.template.spec.containers[0]?.startupProbe as Probe;

describe('GET /ready', function () {
  this.timeout(60_000);

  it('is 503 only until Elasticsearch responds', async () => {
    const proxy = await EngineProxy.start(engines().elasticsearch.url);
    const breakDown = () => proxy.impersonate((_request, response) => response.destroy());
    const recover = breakDown();
    const service = await startService({ ELASTICSEARCH_URL: proxy.url });
    try {
      expectProblem(await service.get('/ready'), 503, 'search_unavailable');
      expect((await service.get('/ping')).status).to.equal(200);
      recover();
      await waitFor(async () => (await service.get('/ready')).status === 200, 'the replica to be ready');
      expect((await service.get('/health')).body).to.include({ status: 'initializing' });
      breakDown();
      await waitFor(async () => (await service.get('/health')).body.status === 'unavailable', 'an outage');
      expect(await service.get('/ready')).to.deep.include({ status: 200, body: { ready: true } });
    } finally {
      await service.stop();
      await proxy.close();
    }
  });
});

describe('A rollout on Kubernetes', function () {
  this.timeout(60_000);
  const slug = newSlug();
  let nodes: IsolatedNodes;
  let engine: Engine;
  let keys: Keys;
  let withoutRights: string;

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    nodes = await isolatedNodes();
    engine = await nodes.start('secured', { administrator: ADMINISTRATOR });
    keys = await makeKeys(slug, engine.url);
    const administrator = new Client({ node: engine.url, auth: ADMINISTRATOR_AUTH });
    const { encoded } = await administrator.security.createApiKey({
      name: 'without rights',
      role_descriptors: { none: { cluster: [], indices: [] } },
    });
    withoutRights = keepSecret(encoded);
    await administrator.close();
  });
  // The old replica, which must serve all the time.
  const old = useService(
    () => PACKAGES,
    () => ({ ELASTICSEARCH_URL: engine.url, ...keys, ...UNCACHED }),
    { slug, auth: ADMINISTRATOR_AUTH },
  );
  const reading = useBackgroundReader(old, [PACKAGES.length]);
  after(() => nodes.stop());

  /** Starts a new replica. @returns whether Kubernetes would count it as started, and so stop an old one. */
  async function startsWith(env: Record<string, string>): Promise<boolean> {
    const replica = spawnReplica(old, { ELASTICSEARCH_URL: engine.url, ...keys, ...env });
    try {
      return await hasStarted(probe, await replica.url(), SPEED);
    } finally {
      await replica.stop();
    }
  }

  it('succeeds with the right keys', async () => {
    expect(await startsWith({})).to.equal(true);
  });

  it('ends at the first new replica without a valid key', async () => {
    const wrong = keepSecret(Buffer.from('an-id-change-me:a-secret-change-me').toString('base64'));
    const started = await Promise.all(
      [wrong, withoutRights, ''].map((key) => startsWith({ ELASTICSEARCH_API_KEY: key })),
    );
    expect(started).to.deep.equal([false, false, false]);
  });

  it('ends at the first new replica if Elasticsearch is unreachable at its address', async () => {
    const unreachable = `http://127.0.0.1:${await getPort()}`;
    expect(await startsWith({ ELASTICSEARCH_URL: unreachable })).to.equal(false);
  });

  it('ends at the first new replica with the image of another program', async () => {
    const other = await datasetServer((_request, response) => response.writeHead(404).end());
    const urls = [new URL(other.url).origin, `http://127.0.0.1:${await getPort()}`];
    const started = await Promise.all(urls.map((url) => hasStarted(probe, url, SPEED)));
    expect(started).to.deep.equal([false, false]);
    await other.close();
  });

  reading.itNoticesNothing();
});
