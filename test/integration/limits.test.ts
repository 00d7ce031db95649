import { Redis } from 'ioredis';
import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { useOwnEngine } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { BYPASS_SECRET, REBUILD_SECRET, useService } from '../support/service.js';
import { useReplicaStarter } from '../support/replica-starter.js';

// Forged addresses, and counts that replicas share: flood.test.ts. Invalid bypass tokens: siblings.test.ts, and
// test/unit/http/request/bypass-token.test.ts.
describe('Rate limits', () => {
  // A separate Redis, because its commands are counted.
  const engine = useOwnEngine('redis');
  const variables = () => ({
    RATE_LIMIT_POINTS: '5',
    RATE_LIMIT_WINDOW_SECONDS: '300',
    // So that each test can use its own client address.
    TRUSTED_PROXIES: '127.0.0.1',
    REDIS_URL: engine().url,
  });
  const suite = useService(() => packagesNamed(['alpha', 'beta']), variables);
  const startReplica = useReplicaStarter(suite);
  let redis: Redis;
  before(() => {
    redis = new Redis(engine().url);
    // It ends before the client does.
    redis.on('error', () => undefined);
  });
  after(() => redis.disconnect());

  const as = (ip: string, headers: Record<string, string> = {}) => ({
    headers: { 'X-Forwarded-For': ip, ...headers },
  });

  it('share one limit over /stats, /browse and /search', async () => {
    const client = as('198.51.100.1');
    const paths = ['/stats', '/browse', '/search?q=alpha', '/search?q=a', '/stats'];
    for (const [used, path] of paths.entries()) {
      const { status, headers } = await suite.service.get(path, client);
      expect(status).to.equal(path === '/search?q=a' ? 400 : 200);
      expect(headers.get('RateLimit-Policy')).to.equal('"reading";q=5;w=300');
      expect(headers.get('RateLimit')).to.match(new RegExp(`^"reading";r=${4 - used};t=(\\d+)$`));
    }
    const blocked = await suite.service.get('/search?q=alpha', client);
    expectProblem(blocked, 429, 'rate_limited');
    expect(Number(blocked.headers.get('Retry-After'))).to.be.within(290, 300);
    expect(blocked.headers.get('RateLimit')).to.match(/^"reading";r=0;t=/);
  });

  it('count /lookup by tens of names and /similar three times', async () => {
    const names = (count: number) => Array.from({ length: count }, () => 'name=alpha').join('&');
    const remaining = async (path: string, client: RequestInit) => {
      const { status, headers } = await suite.service.get(path, client);
      const [, left] = /;r=(\d+);/.exec(headers.get('RateLimit') ?? '') ?? [];
      return [status, Number(left)];
    };
    const client = as('198.51.100.18');
    expect(await remaining(`/lookup?${names(10)}`, client)).to.deep.equal([200, 4]);
    // A request with an invalid parameter costs one point.
    expect(await remaining('/lookup?name=', client)).to.deep.equal([400, 3]);
    expect(await remaining(`/lookup?${names(11)}`, client)).to.deep.equal([200, 1]);
    expect(await remaining('/packages/alpha', client)).to.deep.equal([200, 0]);
    expect(await remaining('/similar?name=alpha', as('198.51.100.19'))).to.deep.equal([200, 2]);
    // Never more than the whole budget.
    expect(await remaining(`/lookup?${names(100)}`, as('198.51.100.23'))).to.deep.equal([200, 0]);
  });

  it('leave no points in any replica after a request that costs more than are left', async () => {
    const replica = await startReplica(variables());
    const client = as('198.51.100.20');
    for (let used = 1; used <= 3; used++) await suite.service.get('/stats', client);
    const rejected = await suite.service.get('/similar?name=alpha', client);
    const detail = expectProblem(rejected, 429, 'rate_limited');
    const [, end = ''] =
      /^this request costs 3 points, fewer were left, and the limit resets at (\S+)$/.exec(detail) ?? [];
    const seconds = (Date.parse(end) - Date.now()) / 1000;
    expect(seconds).to.be.closeTo(Number(rejected.headers.get('Retry-After')), 5);
    for (const service of [suite.service, replica]) {
      const cheap = await service.get('/search?q=alpha', client);
      expect(expectProblem(cheap, 429, 'rate_limited')).to.contain('this request costs 1 point,');
      expect(cheap.headers.get('RateLimit')).to.match(/^"reading";r=0;t=\d+$/);
    }
  });

  it('let a blocked client use /debug-ip, /ping, /health and /ready', async () => {
    const client = as('198.51.100.2');
    for (let i = 0; i < 6; i++) await suite.service.get('/stats', client);
    for (const path of ['/ping', '/health', '/ready']) {
      const { status, headers } = await suite.service.get(path, client);
      expect([status, headers.get('RateLimit')]).to.deep.equal([200, null]);
    }
    const { headers, body } = await suite.service.get('/debug-ip', client);
    expect(headers.get('RateLimit-Policy')).to.equal('"debug";q=30;w=60');
    expect(body).to.include({ ip: '198.51.100.2', limit_key: '198.51.100.2' });
    expect(body.limit).to.include({ limit: 5, remaining: 0 });
  });

  it('cost as much as /debug-ip says', async () => {
    const { costs } = (await suite.service.get('/debug-ip', as('198.51.100.27'))).body as {
      costs: Record<string, { points: number; per_names?: number }>;
    };
    const { paths } = (await suite.service.get('/openapi.json')).body as { paths: object };
    expect(Object.keys(costs)).to.deep.equal(Object.keys(paths));
    expect(costs['/lookup']).to.deep.equal({ points: 1, per_names: 10 });
    expect(costs['/changes.atom']).to.deep.equal({ points: 1, with_like: 3 });
    const requests = ['/search?q=alpha', '/similar?name=alpha', '/stats', '/health', '/debug-ip'];
    for (const [n, path] of requests.entries()) {
      const client = as(`198.51.101.${n}`);
      await suite.service.get(path, client);
      const { limit } = (await suite.service.get('/debug-ip', client)).body as {
        limit: { remaining: number };
      };
      expect({ points: 5 - limit.remaining }, path).to.deep.equal(costs[path.split('?')[0] ?? '']);
    }
  });

  it('count /debug-ip towards its own limit', async () => {
    const client = as('198.51.100.3');
    for (let i = 0; i < 30; i++) expect((await suite.service.get('/debug-ip', client)).status).to.equal(200);
    expectProblem(await suite.service.get('/debug-ip', client), 429, 'rate_limited');
    expect((await suite.service.get('/stats', client)).status).to.equal(200);
  });

  it('count all addresses of an IPv6 /64 as one client', async () => {
    for (let i = 0; i < 5; i++) {
      expect((await suite.service.get('/stats', as(`2001:db8:1:2::${i}`))).status).to.equal(200);
    }
    expect((await suite.service.get('/stats', as('2001:db8:1:2:ffff::1'))).status).to.equal(429);
    expect((await suite.service.get('/stats', as('2001:db8:1:3::1'))).status).to.equal(200);
  });

  it('do not apply with a bypass token', async () => {
    const issued = await suite.service.get(`/get-bypass?secret=${BYPASS_SECRET}`);
    expect(issued.body.valid_for_seconds).to.equal(3600);
    const client = as('198.51.100.6', { 'X-Bypass-Token': issued.body.bypass_token as string });
    for (let i = 0; i < 6; i++) {
      const { status, headers } = await suite.service.get('/search?q=alpha', client);
      expect(status).to.equal(200);
      expect(headers.get('RateLimit')).to.be.null;
    }
    const { body } = await suite.service.get('/debug-ip', client);
    expect(body.bypass.valid).to.be.true;
    expect(body.bypass.valid_for_seconds).to.be.within(3590, 3600);
  });

  it('do not let a web page of another site lock out its visitor or use a secret', async () => {
    const fromPage = (site: string) => as('198.51.100.9', { 'Sec-Fetch-Site': site });
    const secrets = [`/get-bypass?secret=${BYPASS_SECRET}`, `/rebuild?secret=${REBUILD_SECRET}`];
    const plain = await suite.service.get('/rebuild?secret=wrong', as('198.51.100.10'));
    for (let i = 0; i < 10; i++) {
      for (const path of ['/rebuild?secret=wrong', '/get-bypass', ...secrets]) {
        const answer = await suite.service.get(path, fromPage('cross-site'));
        expectProblem(answer, 403, 'forbidden');
        expect(answer.text).to.equal(plain.text);
      }
    }
    expect(suite.service.isRebuilding()).to.equal(false);
    for (const site of ['none', 'same-origin', 'same-site']) {
      const answer = await suite.service.get(secrets[0] as string, fromPage(site));
      expect(answer.status, site).to.equal(200);
    }
    // Requests that the user of a browser starts are counted as usual.
    for (let i = 0; i < 10; i++) {
      expectProblem(await suite.service.get('/rebuild', fromPage('none')), 403, 'forbidden');
    }
    expectProblem(await suite.service.get('/rebuild', fromPage('none')), 429, 'rate_limited');
    expectProblem(await suite.service.get('/rebuild', fromPage('cross-site')), 403, 'forbidden');
  });

  it('lock only one address out of the secret endpoints after ten wrong secrets', async () => {
    const client = as('198.51.100.7');
    for (let i = 0; i < 10; i++) {
      const path = i % 2 === 0 ? '/get-bypass?secret=wrong' : '/rebuild?secret=wrong';
      expectProblem(await suite.service.get(path, client), 403, 'forbidden');
    }
    for (const path of [`/get-bypass?secret=${BYPASS_SECRET}`, `/rebuild?secret=${REBUILD_SECRET}`]) {
      const answer = await suite.service.get(path, client);
      expectProblem(answer, 429, 'rate_limited');
      expect(Number(answer.headers.get('Retry-After'))).to.be.within(890, 900);
    }
    const other = await suite.service.get(`/get-bypass?secret=${BYPASS_SECRET}`, as('198.51.100.8'));
    expect(other.status).to.equal(200);
  });

  it('reject a client over the limit without a Redis call', async () => {
    const asked = async () => {
      const calls = (await redis.info('commandstats')).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g);
      return [...calls].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    const stats = () => suite.service.get('/stats', as('198.51.100.23'));
    for (let i = 0; i < 6; i++) await stats();
    const before = await asked();
    expect(before).to.be.greaterThan(0);
    for (let i = 0; i < 50; i++) expectProblem(await stats(), 429, 'rate_limited');
    expect(await asked()).to.equal(before);
  });

  it('end for a client whose counter on Redis has lost its time to live', async () => {
    const key = `${suite.service.slug}:limit:reading:198.51.100.40`;
    await redis.set(key, 5);
    expectProblem(await suite.service.get('/stats', as('198.51.100.40')), 429, 'rate_limited');
    expect(await redis.ttl(key)).to.be.within(290, 300);
  });

  it('count secrets that could not be read, whatever the bypass token', async () => {
    const { body } = await suite.service.get(`/get-bypass?secret=${BYPASS_SECRET}`);
    const client = as('198.51.100.42', { 'X-Bypass-Token': body.bypass_token as string });
    for (let i = 0; i < 10; i++)
      expectProblem(await suite.service.get('/get-bypass?secret=%FF', client), 400, 'invalid_parameter');
    for (const query of ['secret=%FF', 'secret=a&secret=b', `secret=${BYPASS_SECRET}`])
      expectProblem(await suite.service.get(`/rebuild?${query}`, client), 429, 'rate_limited');
  });

  it('tell exactly ten of the concurrent wrong secrets at three replicas from the right one', async () => {
    const replicas = [suite.service, await startReplica(variables()), await startReplica(variables())];
    const statusesOf = async (secret: string, client: RequestInit) => {
      const answers = Array.from({ length: 51 }, (_, i) =>
        (replicas[i % 3] ?? suite.service).get(`/get-bypass?secret=${secret}`, client),
      );
      return (await Promise.all(answers)).map(({ status }) => status).sort();
    };
    const right = await statusesOf(BYPASS_SECRET, as('198.51.100.26'));
    expect(right).to.deep.equal(Array(51).fill(200));
    const wrong = await statusesOf('wrong', as('198.51.100.26'));
    expect(wrong).to.deep.equal([...Array<number>(10).fill(403), ...Array<number>(41).fill(429)]);
    expect(await statusesOf(BYPASS_SECRET, as('198.51.100.26'))).to.deep.equal(Array(51).fill(429));
  });

  it('are counted in the process without Redis', async () => {
    const replica = await startReplica({ ...variables(), REDIS_URL: '' });
    const client = as('198.51.100.30');
    for (let i = 0; i < 5; i++) expect((await replica.get('/stats', client)).status).to.equal(200);
    expectProblem(await replica.get('/stats', client), 429, 'rate_limited');
    expect((await replica.get('/debug-ip', client)).body.limit).to.include({ limit: 5, remaining: 0 });
    for (let i = 0; i < 10; i++) {
      const path = i % 2 === 0 ? '/get-bypass?secret=wrong' : '/rebuild?secret=wrong';
      expectProblem(await replica.get(path, client), 403, 'forbidden');
    }
    const right = await replica.get(`/get-bypass?secret=${BYPASS_SECRET}`, client);
    expectProblem(right, 429, 'rate_limited');
  });

  it('are counted in the process if the database does not exist', async () => {
    const replica = await startReplica({ ...variables(), REDIS_URL: `${engine().url}/99` });
    const client = as('198.51.100.31');
    const keys = async () => (await redis.keys('*')).sort();
    const before = await keys();
    for (let i = 0; i < 5; i++) expect((await replica.get('/stats', client)).status).to.equal(200);
    expectProblem(await replica.get('/stats', client), 429, 'rate_limited');
    expect(await keys()).to.deep.equal(before);
  });
});
