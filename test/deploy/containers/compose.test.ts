import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { ELASTICSEARCH_IMAGE } from '../../../dev/docker.js';
import { run } from '../../../dev/run.js';
import { Compose } from '../../support/compose.js';
import { bundledPackages } from '../../support/datasets.js';
import { startMcp } from '../../support/mcp-client.js';
import { startLoad } from '../../support/load-generator.js';
import { newFolder } from '../../support/run-folder.js';
import { waitFor } from '../../support/wait-for.js';

const SECRET = 'secret-for-tests';
/** As in sibling-dataset.yml. */
const SIBLING_SECRET = 'another-secret-for-tests';
/**
 * The tests send more requests than a client may, so limits are off. The optimizing compiler takes a third of the
 * processor time of a short run; this variable is where Compose passes options to the JVM.
 */
const SETTINGS = {
  REBUILD_SECRET: SECRET,
  BYPASS_SECRET: SECRET,
  API_REPLICAS: '2',
  RATE_LIMIT_POINTS: '0',
  ELASTICSEARCH_HEAP: '512m -XX:TieredStopAtLevel=1',
  ELASTICSEARCH_MEMORY: '1g',
};
/** Open files that these files give to a container. */
const OPEN_FILES = 65_535;
const SIBLING_FILES = ['deploy/siblings.yml', 'test/deploy/containers/sibling-dataset.yml'];
const TOTAL = bundledPackages().length;
const SIBLING = { total_sibling_packages: 3, source: 'sibling.example' };

describe('docker-compose.yml', function () {
  this.timeout(10 * 60_000);
  let compose: Compose;
  let settings: Record<string, string>;

  before(async () => {
    compose = await Compose.create();
    const openFiles = await allowedOpenFiles();
    settings = { ...SETTINGS, ...(openFiles < OPEN_FILES && { OPEN_FILES: String(openFiles) }) };
    await compose.configure(['example.env'], settings);
    await Promise.all([compose.run('build', 'api'), compose.run('up', '-d', 'elasticsearch', 'redis')]);
    await compose.run('up', '-d');
    await compose.healthy('proxy', 1);
    // What follows needs no restart of what runs.
    await compose.configure(['example.env'], settings, SIBLING_FILES);
    const services = ['proxy', 'sibling-proxy', 'prometheus'];
    await compose.run('up', '-d', '--no-recreate', ...services);
    await Promise.all(services.map((service) => compose.healthy(service, 1)));
    await compose.healthy('api', 2);
  });

  after(async function () {
    if (this.test?.parent?.tests.some(({ state }) => state === 'failed') === true) {
      console.log(await compose.run('logs', '--no-color', '--tail', '40'));
    }
    await compose.down();
  });

  async function get(path: string, headers: Record<string, string> = {}, at = compose.url()) {
    const response = await fetch(`${at}${path}`, { headers });
    return { status: response.status, headers: response.headers, body: (await response.json()) as any }; // eslint-disable-line @typescript-eslint/no-explicit-any -- tests assert on its shape
  }

  /** The snapshots (ETags) in enough responses to reach every replica. */
  async function snapshots(at?: string): Promise<Set<string | null>> {
    const ask = () => get('/search?q=redis&limit=1', {}, at);
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    return new Set(answers.map(({ headers }) => headers.get('etag')));
  }

  /** Requests a rebuild, as soon as none runs, and waits until every replica serves the new snapshot. */
  async function rebuild(at = compose.url(), secret = SECRET): Promise<void> {
    const before = await snapshots(at);
    // The previous rebuild may still be finishing, although its snapshot is live.
    const accepted = async () => (await get(`/rebuild?secret=${secret}`, {}, at)).status === 202;
    await waitFor(accepted, 'a rebuild to start');
    const flipped = async () => {
      const seen = await snapshots(at);
      return seen.size === 1 && ![...seen].some((snapshot) => before.has(snapshot));
    };
    // Seldom, because the rebuild needs the processor.
    await waitFor(flipped, 'every replica to serve the new snapshot', 300_000, 500);
  }

  const ofSibling = (path: string) => get(path, {}, compose.url('sibling-proxy'));

  it('starts a loaded service behind the proxy', async () => {
    const health = await get('/health');
    expect(health.body).to.deep.equal({ status: 'ok', total_packages: TOTAL });
    const search = await get('/search?q=redis-server');
    expect(search.body.results[0]).to.include({ name: 'redis-server', rank: 0 });
  });

  it('publishes only the APIs and Prometheus on loopback', async () => {
    const onLoopback = (service: Parameters<Compose['url']>[0]) => {
      const { hostname: HostIp, port: HostPort } = new URL(compose.url(service));
      return [service, [{ HostIp, HostPort }]];
    };
    const containers = await compose.containers();
    const ports = containers.map(({ Config, HostConfig }) => [
      Config.Labels['com.docker.compose.service'],
      Object.values(HostConfig.PortBindings ?? {}).flat(),
    ]);
    const hidden = ['elasticsearch', 'redis', 'api', 'api', 'sibling'].map((service) => [service, []]);
    const published = (['proxy', 'sibling-proxy', 'prometheus'] as const).map(onLoopback);
    expect(ports).to.have.deep.members([...hidden, ...published]);
  });

  it('runs an image without sources and development dependencies', async () => {
    const [replica] = await compose.containers('api');
    const read = async (...command: string[]) =>
      (await run('docker', ['exec', replica?.Id ?? '', ...command])).trim();
    const folders = ['LICENSE', 'data', 'deploy', 'dist', 'mappings', 'node_modules', 'package.json'];
    expect((await read('ls', '-A')).split('\n')).to.have.members(folders);
    expect((await read('ls', 'dist')).split('\n'))
      .to.include('main.js')
      .and.not.include('dev');
    expect((await read('ls', 'dist/mcp')).split('\n')).to.have.members(['LICENSE', 'mcp.js']);
    expect(await read('find', '.', '!', '-perm', '-a=r')).to.equal('');
    const { packages } = JSON.parse(await read('cat', 'node_modules/.package-lock.json')) as {
      packages: Record<string, { dev?: boolean }>;
    };
    expect(Object.keys(packages).filter((path) => packages[path]?.dev === true)).to.deep.equal([]);
    // docs/evidence/dependencies.md has the exact figures.
    const megabytes = Number.parseInt(await read('du', '-sm', '--apparent-size', '.'), 10);
    expect(megabytes).to.be.within(40, 65);
  });

  it('has the MCP server that the commands of docs/agents.md write to a file', async () => {
    const guide = await readFile(new URL('../../../docs/agents.md', import.meta.url), 'utf8');
    const commands = [...guide.matchAll(/^docker ([^#\n]+)/gm)].map(([, args = '']) =>
      args.trim().split(/ +/),
    );
    expect(commands.map(([name]) => name)).to.deep.equal(['create', 'cp', 'rm']);
    const folder = newFolder();
    const image = 'package-registry-search';
    for (const args of commands) {
      const given = args.map((arg) => (arg === image ? `${image}:test` : arg));
      await run('docker', given, { cwd: folder });
    }
    const client = await startMcp(compose.url(), { program: join(folder, 'mcp.mjs') });
    expect((await client.listTools()).tools).to.have.length(3);
    await client.close();
  });

  it('runs nothing as root', async () => {
    for (const { Id } of await compose.containers()) {
      const [, ...processes] = (await run('docker', ['top', Id, '-eo', 'pid,uid'])).trim().split('\n');
      const users = processes.map((line) => Number(line.trim().split(/\s+/)[1]));
      expect(users).to.be.an('array').that.is.not.empty.and.does.not.include(0);
    }
  });

  it('limits clients by the address that the proxy saw instead of forged headers', async () => {
    const honest = await get('/debug-ip');
    const forged = await get('/debug-ip', { 'X-Forwarded-For': '203.0.113.9, 198.51.100.7' });
    expect(forged.body.ip).to.equal(honest.body.ip).and.not.equal(honest.body.peer);
    expect(forged.body.forwarded_for).to.deep.equal([honest.body.ip]);
  });

  it('uses the secrets of each env file for its own registry', async () => {
    expect((await get(`/get-bypass?secret=${SECRET}`)).status).to.equal(200);
    expect((await get('/get-bypass?secret=other')).status).to.equal(403);
    expect((await ofSibling(`/rebuild?secret=${SECRET}`)).status).to.equal(403);
    expect((await get(`/rebuild?secret=${SIBLING_SECRET}`)).status).to.equal(403);
  });

  it('runs a command in the container of the API', async () => {
    const output = await compose.run('exec', '-T', 'api', 'node', 'dist/cli/rollback.js').catch(String);
    expect(output).to.match(/there is no snapshot before registry-packages-v2-/);
  });

  it('serves every request during a rolling restart of two replicas', async () => {
    const stop = startLoad(compose.url());
    for (const { Id } of await compose.containers('api')) {
      await run('docker', ['restart', Id]);
      await compose.healthy('api', 2);
      const log = await run('docker', ['logs', Id]);
      expect(log).to.include('"msg":"stopped"');
    }
    const { requests, failures } = await stop();
    console.log(`      ${requests} requests through the proxy, ${failures.length} failures`);
    expect(failures).to.deep.equal([]);
    expect(requests).to.be.greaterThan(1000);
  });

  it('scrapes every replica for the alert rules', async () => {
    const ask = (path: string) => get(`/api/v1/${path}`, {}, compose.url('prometheus'));
    const query = encodeURIComponent('count(up{job="registry-search"} == 1)');
    const isUp = async () => (await ask(`query?query=${query}`)).body.data.result[0]?.value[1] === '2';
    await waitFor(isUp, 'a scrape of both replicas', 60_000);
    const { groups } = (await ask('rules?type=alert')).body.data as {
      groups: { rules: { name: string }[] }[];
    };
    const names = groups.flatMap(({ rules }) => rules.map(({ name }) => name));
    expect(names).to.include('RegistrySearchDown');
  });

  it('serves a second registry of deploy/siblings.yml with its own data and names', async () => {
    expect((await get('/stats')).body).to.include({ total_registry_packages: TOTAL });
    expect((await ofSibling('/stats')).body).to.include(SIBLING);
    const { body } = await ofSibling('/search?q=redis.client');
    expect(body.results).to.have.length(1);
    const expected = { name: 'Redis.Client', url: 'https://sibling.example/Redis.Client' };
    expect(body.results[0]).to.include(expected);
  });

  it('flips all replicas of the registry that is rebuilt and none of the other', async () => {
    const sibling = compose.url('sibling-proxy');
    const ofSecond = await snapshots(sibling);
    expect(ofSecond).to.have.property('size', 1);
    await rebuild();
    expect(await snapshots(sibling)).to.deep.equal(ofSecond);
    const ofFirst = await snapshots();
    await rebuild(sibling, SIBLING_SECRET);
    expect((await ofSibling('/stats')).body).to.include(SIBLING);
    expect(await snapshots()).to.deep.equal(ofFirst);
  });

  describe('with deploy/cluster.env', () => {
    before(async () => {
      const files = (await limitsSuffice()) ? [] : ['test/deploy/containers/low-limits.yml'];
      await compose.configure(['example.env', 'cluster.env'], settings, files);
      const services = ['elasticsearch-2', 'elasticsearch-3', 'proxy'];
      await compose.run('up', '-d', '--remove-orphans', ...services);
    });

    /** Queries a node from inside its container, because none is published. */
    async function elasticsearch(path: string) {
      const curl = ['curl', '--fail', '--silent', `http://localhost:9200/${path}`];
      return JSON.parse(await compose.run('exec', '-T', 'elasticsearch', ...curl)) as unknown;
    }

    /** Asserts that the index and its copy are on two nodes. */
    async function expectCopy() {
      const found = await elasticsearch('_cat/shards/registry-packages-v2?format=json&h=prirep,state,node');
      const shards = found as { prirep: string; state: string; node: string }[];
      expect(shards.map(({ prirep, state }) => `${prirep} ${state}`)).to.have.members([
        'p STARTED',
        'r STARTED',
      ]);
      expect(new Set(shards.map(({ node }) => node))).to.have.property('size', 2);
    }

    it('runs three nodes with a copy of the index on a second one', async () => {
      const wait = '_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=120s';
      expect(await elasticsearch(wait)).to.include({ status: 'green', number_of_nodes: 3, timed_out: false });
      await expectCopy();
    });

    it('rebuilds with a copy of the new index', async () => {
      await compose.healthy('proxy', 1);
      await compose.healthy('api', 2);
      expect((await get('/health')).body.total_packages).to.equal(TOTAL);
      await rebuild();
      await expectCopy();
    });
  });
});

/** Open files that this machine can give to a container. */
async function allowedOpenFiles(): Promise<number> {
  const limit = (await run('sh', ['-c', 'ulimit -Hn'])).trim();
  return limit === 'unlimited' ? Infinity : Number(limit);
}

/** Whether containers meet the limits that Elasticsearch requires of cluster nodes. */
async function limitsSuffice(): Promise<boolean> {
  const ask = 'ulimit -Hn; cat /proc/sys/vm/max_map_count';
  const answer = await run('docker', ['run', '--rm', '--entrypoint', 'sh', ELASTICSEARCH_IMAGE, '-c', ask]);
  const [files, maps] = answer.split('\n');
  return (files === 'unlimited' || Number(files) >= 65_535) && Number(maps) >= 262_144;
}
