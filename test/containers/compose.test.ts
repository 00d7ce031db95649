import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { ELASTICSEARCH_IMAGE } from '../../src/dev/docker.js';
import { freePort } from '../../src/dev/free-port.js';
import { run } from '../../src/dev/run.js';
import { Compose } from '../support/compose.js';
import { bundledPackages } from '../support/datasets.js';
import { LoadGenerator } from '../support/load-generator.js';
import { RawConnection } from '../support/raw-connection.js';
import { waitFor } from '../support/wait-for.js';

/** As in deploy/example.env. */
const SECRET = 'change-me';
/** The tests send more requests than a client may, so limits are off. */
const SETTINGS = { RATE_LIMIT_POINTS: '0', ELASTICSEARCH_HEAP: '512m', ELASTICSEARCH_MEMORY: '1g' };
const TOTAL = bundledPackages().length;

describe('docker-compose.yml', function () {
  this.timeout(10 * 60_000);
  let compose: Compose;

  before(async () => {
    compose = await Compose.create();
    await compose.configure(['example.env'], SETTINGS);
    await compose.run('build', 'api');
    await compose.run('up', '-d', 'proxy');
    await compose.healthy('proxy', 1);
  });

  after(async function () {
    if (this.test?.parent?.tests.some(({ state }) => state === 'failed') === true) {
      console.log(await compose.run('logs', '--no-color', '--tail', '40'));
    }
    await compose.down();
  });

  async function get(path: string, headers: Record<string, string> = {}, at = compose.url) {
    const response = await fetch(`${at}${path}`, { headers });
    return { status: response.status, headers: response.headers, body: (await response.json()) as any }; // eslint-disable-line @typescript-eslint/no-explicit-any -- tests assert on its shape
  }

  /** The generations (ETags) in enough responses to reach every replica. */
  async function generations(at?: string): Promise<Set<string | null>> {
    const ask = () => get('/search?q=redis&limit=1', {}, at);
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    return new Set(answers.map(({ headers }) => headers.get('etag')));
  }

  /** Requests a rebuild, as soon as none runs, and waits until every replica serves the new generation. */
  async function rebuild(at = compose.url, secret = SECRET): Promise<void> {
    const before = await generations(at);
    // The previous rebuild may still be finishing, although its snapshot is live.
    const accepted = async () => (await get(`/rebuild?secret=${secret}`, {}, at)).status === 202;
    await waitFor(accepted, 'a rebuild to start');
    const again = await get(`/rebuild?secret=${secret}`, {}, at);
    expect([again.status, again.body.code]).to.deep.equal([503, 'rebuilding']);
    const flipped = async () => {
      const seen = await generations(at);
      return seen.size === 1 && ![...seen].some((generation) => before.has(generation));
    };
    await waitFor(flipped, 'every replica to serve the new generation', 300_000);
  }

  /** Where the containers of a service publish ports. */
  async function published(service?: string) {
    const containers = await compose.containers(service);
    return containers.flatMap(({ HostConfig }) => Object.values(HostConfig.PortBindings ?? {}).flat());
  }

  /** What `published` returns for an address on loopback. */
  const onLoopback = (url: string) => [{ HostIp: '127.0.0.1', HostPort: new URL(url).port }];

  it('starts a loaded service behind the proxy', async () => {
    const health = await get('/health');
    expect(health.body).to.deep.equal({ status: 'ok', total_packages: TOTAL });
    const search = await get('/search?q=redis-server');
    expect(search.body.results[0]).to.include({ name: 'redis-server', rank: 0 });
  });

  it('publishes only the API, on loopback', async () => {
    expect(await compose.containers()).to.have.length(4);
    expect(await published()).to.deep.equal(onLoopback(compose.url));
  });

  it('runs an image without sources and development dependencies', async () => {
    const read = async (...command: string[]) => compose.run('exec', '-T', 'api', ...command);
    const folders = ['LICENSE', 'data', 'deploy', 'dist', 'mappings', 'node_modules', 'package.json'];
    expect((await read('ls', '-A')).trim().split('\n')).to.have.members(folders);
    expect((await read('ls', 'dist')).split('\n'))
      .to.include('main.js')
      .and.not.include('dev');
    const { packages } = JSON.parse(await read('cat', 'node_modules/.package-lock.json')) as {
      packages: Record<string, { dev?: boolean }>;
    };
    expect(Object.values(packages)).to.have.length.within(95, 115);
    expect(Object.keys(packages).filter((path) => packages[path]?.dev === true)).to.deep.equal([]);
    // docs/dependencies.md has the exact figures.
    const megabytes = Number.parseInt(await read('du', '-sm', '--apparent-size', '.'), 10);
    expect(megabytes).to.be.within(40, 65);
  });

  it('runs nothing as root', async () => {
    for (const { Id } of await compose.containers()) {
      const [, ...processes] = (await run('docker', ['top', Id, '-eo', 'pid,uid'])).trim().split('\n');
      const users = processes.map((line) => Number(line.trim().split(/\s+/)[1]));
      expect(users).to.be.an('array').that.is.not.empty.and.does.not.include(0);
    }
  });

  it('limits clients by the address that the proxy saw, not by forged headers', async () => {
    const honest = await get('/debug-ip');
    const forged = await get('/debug-ip', { 'X-Forwarded-For': '203.0.113.9, 198.51.100.7' });
    expect(forged.body.ip).to.equal(honest.body.ip).and.not.equal(honest.body.peer);
    expect(forged.body.forwarded_for).to.deep.equal([honest.body.ip]);
  });

  it('keeps an idle connection for as long as it tells the client', async () => {
    const connection = await RawConnection.open(compose.url);
    const request = async (count: number) => {
      connection.send('GET /ping HTTP/1.1\r\nHost: api\r\n\r\n');
      await waitFor(() => connection.responses.length === count, `response ${count}`);
      return connection.responses[count - 1];
    };
    const first = await request(1);
    const [, seconds] = /^timeout=(\d+)$/.exec(first?.headers.get('keep-alive') ?? '') ?? [];
    expect(Number(seconds)).to.be.within(5, 60);
    await pause(Number(seconds) * 1000);
    expect(await request(2)).to.include({ status: 200 });
    connection.endSending();
  });

  it('uses the secrets of the env file', async () => {
    expect((await get(`/get-bypass?secret=${SECRET}`)).status).to.equal(200);
    expect((await get('/get-bypass?secret=other')).status).to.equal(403);
  });

  it('runs the commands', async () => {
    const output = await compose.run('exec', '-T', 'api', 'node', 'dist/cli/rollback.js').catch(String);
    expect(output).to.match(/there is no generation before registry-packages-/);
  });

  it('serves every request during a rolling restart of two replicas', async () => {
    await compose.run('up', '-d', '--no-recreate', '--scale', 'api=2', 'proxy');
    await compose.healthy('api', 2);
    const load = new LoadGenerator(compose.url);
    for (const { Id } of await compose.containers('api')) {
      await run('docker', ['restart', Id]);
      await compose.healthy('api', 2);
      const log = await run('docker', ['logs', Id]);
      expect(log).to.include('"msg":"stopped"');
    }
    await load.stop();
    console.log(`      ${load.requests} requests through the proxy, ${load.failures.length} failures`);
    expect(load.failures).to.deep.equal([]);
    expect(load.requests).to.be.greaterThan(1000);
  });

  it('flips both replicas after a rebuild through the proxy', () => rebuild());

  describe('with the profile `monitoring`', () => {
    let prometheus: string;

    before(async () => {
      prometheus = `127.0.0.1:${await freePort()}`;
      await compose.configure(['example.env'], { ...SETTINGS, PROMETHEUS_ADDRESS: prometheus });
      await compose.run('up', '-d', '--no-recreate', '--scale', 'api=2', 'prometheus');
      await compose.healthy('prometheus', 1);
    });

    after(() => compose.run('rm', '--stop', '--force', 'prometheus'));

    async function ask<T>(path: string): Promise<T> {
      const response = await fetch(`http://${prometheus}/api/v1/${path}`);
      expect(response.status).to.equal(200);
      return ((await response.json()) as { data: T }).data;
    }

    it('scrapes every replica', async () => {
      const query = encodeURIComponent('count(up{job="registry-search"} == 1)');
      const up = async () => {
        const { result } = await ask<{ result: { value: [number, string] }[] }>(`query?query=${query}`);
        return result[0]?.value[1] === '2';
      };
      await waitFor(up, 'a scrape of both replicas', 60_000);
    });

    it('evaluates the alert rules', async () => {
      const { groups } = await ask<{ groups: { rules: { name: string }[] }[] }>('rules?type=alert');
      const names = groups.flatMap(({ rules }) => rules.map(({ name }) => name));
      expect(names).to.include('RegistrySearchDown');
    });

    it('publishes Prometheus on loopback only', async () => {
      expect(await published('prometheus')).to.deep.equal(onLoopback(`http://${prometheus}`));
    });
  });

  describe('with deploy/siblings.yml', () => {
    /** As in deploy/sibling.env. */
    const SIBLING_SECRET = 'change-me-too';
    const SIBLING = { total_sibling_packages: 3, source: 'sibling.example' };

    before(async () => {
      await compose.configure(['example.env'], SETTINGS, [
        'deploy/siblings.yml',
        'test/containers/sibling-dataset.yml',
      ]);
      await compose.configureSibling({
        RATE_LIMIT_POINTS: '0',
        DATASET_URL: 'file:///datasets/sibling.csv',
        PACKAGE_URL_TEMPLATE: 'https://sibling.example/{+name}',
      });
      await compose.run('up', '-d', '--no-recreate', '--scale', 'api=2', 'proxy', 'sibling-proxy');
      await compose.healthy('sibling-proxy', 1);
    });

    after(() => compose.run('rm', '--stop', '--force', 'sibling-proxy', 'sibling'));

    const ofSibling = (path: string) => get(path, {}, compose.siblingUrl);

    it('serves two registries, each with its own data and names', async () => {
      expect((await get('/stats')).body).to.include({ total_registry_packages: TOTAL });
      expect((await ofSibling('/stats')).body).to.include(SIBLING);
      const { body } = await ofSibling('/search?q=redis.client');
      expect(body.results).to.have.length(1);
      expect(body.results[0]).to.include({
        name: 'Redis.Client',
        url: 'https://sibling.example/Redis.Client',
      });
    });

    it('publishes the second registry on loopback only', async () => {
      expect(await published('sibling-proxy')).to.deep.equal(onLoopback(compose.siblingUrl));
      expect(await published('sibling')).to.deep.equal([]);
    });

    it('gives each registry its own secrets', async () => {
      expect((await ofSibling(`/rebuild?secret=${SECRET}`)).status).to.equal(403);
      expect((await get(`/rebuild?secret=${SIBLING_SECRET}`)).status).to.equal(403);
    });

    it('rebuilds the first registry without affecting the second', async () => {
      const before = await generations(compose.siblingUrl);
      expect(before).to.have.property('size', 1);
      await rebuild();
      expect(await generations(compose.siblingUrl)).to.deep.equal(before);
    });

    it('rebuilds the second registry without affecting the first', async () => {
      const before = await generations();
      await rebuild(compose.siblingUrl, SIBLING_SECRET);
      expect((await ofSibling('/stats')).body).to.include(SIBLING);
      expect(await generations()).to.deep.equal(before);
    });
  });

  describe('with deploy/cluster.env', () => {
    before(async () => {
      const files = (await limitsSuffice()) ? [] : ['test/containers/low-limits.yml'];
      await compose.configure(['example.env', 'cluster.env'], SETTINGS, files);
      const services = ['elasticsearch-2', 'elasticsearch-3', 'proxy'];
      await compose.run('up', '-d', '--scale', 'api=2', ...services);
    });

    /** Queries a node from inside its container, because none is published. */
    async function elasticsearch(path: string) {
      const curl = ['curl', '--fail', '--silent', `http://localhost:9200/${path}`];
      return JSON.parse(await compose.run('exec', '-T', 'elasticsearch', ...curl)) as unknown;
    }

    /** Asserts that the index and its copy are on two nodes. */
    async function expectCopy() {
      const found = await elasticsearch('_cat/shards/registry-packages?format=json&h=prirep,state,node');
      const shards = found as { prirep: string; state: string; node: string }[];
      expect(shards.map(({ prirep, state }) => `${prirep} ${state}`)).to.have.members([
        'p STARTED',
        'r STARTED',
      ]);
      expect(new Set(shards.map(({ node }) => node))).to.have.property('size', 2);
    }

    it('runs three nodes, with a copy of the index on a second one', async () => {
      const wait = '_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=120s';
      expect(await elasticsearch(wait)).to.include({ status: 'green', number_of_nodes: 3, timed_out: false });
      await expectCopy();
    });

    it('serves and rebuilds, with a copy of the new index', async () => {
      await compose.healthy('proxy', 1);
      await compose.healthy('api', 2);
      expect((await get('/health')).body.total_packages).to.equal(TOTAL);
      await rebuild();
      await expectCopy();
    });
  });
});

/** Whether containers meet the limits that Elasticsearch requires of cluster nodes. */
async function limitsSuffice(): Promise<boolean> {
  const ask = 'ulimit -Hn; cat /proc/sys/vm/max_map_count';
  const answer = await run('docker', ['run', '--rm', '--entrypoint', 'sh', ELASTICSEARCH_IMAGE, '-c', ask]);
  const [files, maps] = answer.split('\n');
  return (files === 'unlimited' || Number(files) >= 65_535) && Number(maps) >= 262_144;
}
