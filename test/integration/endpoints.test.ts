import { expect } from 'chai';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { startService, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('With the bundled snapshot,', () => {
  const packages = bundledPackages();
  const suite = useService(() => packages);
  const get = (path: string, init?: RequestInit) => suite.service.get(path, init);

  it('GET /ping returns pong', async () => {
    const { status, body } = await get('/ping');
    expect(status).to.equal(200);
    expect(body).to.deep.equal({ ping: 'pong' });
  });

  it('GET /health returns ok and the number of packages', async () => {
    const { status, body } = await get('/health');
    expect(status).to.equal(200);
    expect(body).to.deep.equal({ status: 'ok', total_packages: 63_666 });
  });

  it('GET /stats returns a field named after the slug, the website of the registry, and the time of the snapshot', async () => {
    const { status, body } = await get('/stats');
    expect(status).to.equal(200);
    expect(body).to.have.all.keys(`total_${suite.service.slug}_packages`, 'source', 'note');
    expect(body[`total_${suite.service.slug}_packages`]).to.equal(63_666);
    expect(body.source).to.equal('tracker.debian.org');
    expect(body.note).to.match(/snapshot .*updated periodically.*\d{4}-\d\d-\d\dT\d\d:\d\d.*, .* ago\.$/);
  });

  describe('GET /browse', () => {
    it('returns the first page of 200 by default, by number, without ranks', async () => {
      const { status, body, headers } = await get('/browse');
      expect(status).to.equal(200);
      expect(headers.get('Content-Type')).to.equal('application/json; charset=utf-8');
      expect(body).to.deep.equal({ page: 1, limit: 200, results: packages.slice(0, 200) });
    });

    it('returns the last 66 on page 319', async () => {
      const { body } = await get('/browse?page=319&limit=200');
      expect(body.results).to.have.length(66);
      expect(body.results).to.deep.equal(packages.slice(-66));
    });

    it('caps limit at the maximum, and echoes it', async () => {
      for (const limit of ['501', '99999999999999999999999999']) {
        const { body } = await get(`/browse?page=2&limit=${limit}`);
        expect(body).to.deep.equal({ page: 2, limit: 500, results: packages.slice(500, 1000) });
      }
    });

    it('returns an empty page past the end, even far past it', async () => {
      for (const page of [320, Number.MAX_SAFE_INTEGER]) {
        const { status, body } = await get(`/browse?page=${page}`);
        expect(status).to.equal(200);
        expect(body).to.deep.equal({ page, limit: 200, results: [] });
      }
    });
  });

  describe('GET /search', () => {
    it('ranks redis, then redis-…, then names that contain it, each tier in name order', async () => {
      const { status, body, headers } = await get('/search?q=redis');
      expect(status).to.equal(200);
      expect(headers.get('X-Results-Truncated')).to.be.null;
      expect(body.query).to.equal('redis');
      expect(body.count).to.equal(body.results.length);
      expect(body.results[0]).to.deep.equal({ ...packages.find(({ name }) => name === 'redis'), rank: 0 });
      const tier = (rank: number) =>
        (body.results as { name: string; rank: number }[]).filter((r) => r.rank === rank).map((r) => r.name);
      expect(tier(1))
        .to.include('redis-server')
        .and.to.satisfy((names: string[]) => names.every((n) => n.startsWith('redis')));
      expect(tier(2)).to.include('python3-redis');
      for (const rank of [1, 2]) expect(tier(rank)).to.deep.equal(tier(rank).sort());
    });

    it('returns 250 by default, and reports that more match', async () => {
      const { body, headers } = await get('/search?q=lib');
      expect(body.count).to.equal(250);
      expect(body.results).to.have.length(250);
      expect(headers.get('X-Results-Truncated')).to.equal('true');
    });

    it('caps limit at 500', async () => {
      const { body } = await get('/search?q=lib&limit=501');
      expect(body.count).to.equal(500);
    });

    it('echoes the trimmed query with its case', async () => {
      for (const q of ['%20%09ReDiS%C2%A0', '%C2%85ReDiS%E3%80%80']) {
        const { body } = await get(`/search?q=${q}`);
        expect(body.query).to.equal('ReDiS');
        expect(body.results[0]).to.include({ name: 'redis', rank: 0 });
      }
      expect((await get('/search?q=%EF%BB%BFredis')).body).to.include({ query: '\uFEFFredis', count: 0 });
    });

    it('counts characters as code points', async () => {
      const rockets = '🚀'.repeat(100);
      const { status, body } = await get(`/search?q=${encodeURIComponent(rockets)}`);
      expect(status).to.equal(200);
      expect(body).to.deep.equal({ query: rockets, count: 0, results: [] });
    });

    it('ignores unknown parameters', async () => {
      const { status } = await get('/search?q=redis&colour=red&colour=blue&__proto__=x');
      expect(status).to.equal(200);
    });
  });

  it('HEAD responds like GET, without the body', async () => {
    for (const path of ['/ping', '/health', '/stats', '/browse', '/search?q=redis', '/debug-ip']) {
      const head = await get(path, { method: 'HEAD' });
      expect(head.status, path).to.equal(200);
      expect(head.text, path).to.equal('');
      expect(Number(head.headers.get('Content-Length')), path).to.be.greaterThan(0);
    }
  });

  it('GET /debug-ip shows the client as the limits see it, and no secrets', async () => {
    const secret = 'not-for-anyone';
    const { status, body, text } = await get('/debug-ip', {
      headers: {
        'X-Forwarded-For': '203.0.113.9',
        Authorization: secret,
        Cookie: secret,
        'X-Bypass-Token': secret,
        'X-Session-Id': secret,
        'X-Auth-User': secret,
        'X-Harmless': secret,
        'User-Agent': 'a test',
        'X-Real-Ip': '203.0.113.9',
        Referer: `https://api.example/rebuild?%73ecret=${secret}`,
        Via: `1.1 https://proxy.example/?a=1;%73ecret=${secret}, 1.1 other%3Fsecret=${secret}`,
        Forwarded: `for=203.0.113.9;host="api.example?${secret}"`,
        'X-Forwarded-Host': `api.example?${secret}`,
      },
    });
    expect(status).to.equal(200);
    expect(body).to.include({ ip: '127.0.0.1', peer: '127.0.0.1', limit_key: '127.0.0.1' });
    expect(body.forwarded_for).to.deep.equal(['203.0.113.9']);
    expect(body.headers).to.include({
      'user-agent': 'a test',
      'x-forwarded-for': '203.0.113.9',
      'x-real-ip': '203.0.113.9',
      via: '1.1 https://proxy.example/?[redacted] 1.1 other?[redacted]',
      authorization: '[redacted]',
      cookie: '[redacted]',
      referer: '[redacted]',
      'x-auth-user': '[redacted]',
      'x-harmless': '[redacted]',
      'x-session-id': '[redacted]',
    });
    expect(body.bypass).to.deep.equal({ valid: false, valid_for_seconds: 0 });
    expect(text).not.to.contain(secret);
    const claimed = await get('/debug-ip', { headers: { 'X-Forwarded-For': `unknown?%73ecret=${secret}` } });
    expect(claimed.body.forwarded_for).to.deep.equal(['unknown?[redacted]']);
    expect(claimed.text).not.to.contain(secret);
  });
});

describe('GET /stats', () => {
  const MINUTE_MS = 60_000;
  const HOUR_MS = 60 * MINUTE_MS;
  const DAY_MS = 24 * HOUR_MS;
  const CHANGES = 'X-Snapshot-Changes';
  const names = Array.from({ length: 10 }, (_, i) => `package-${i}`);
  const suite = useService(() => packagesNamed(names));
  const get = (headers = {}) => suite.service.get('/stats', { headers });

  const clock = Date.now;
  afterEach(() => (Date.now = clock));

  /** Sets the clock of this process, which the service shares, so that the snapshot has this age. */
  function setAge(ageMs: number): void {
    const takenAt = Date.parse(suite.service.server.generations.current?.meta.taken_at ?? '');
    const began = performance.now();
    Date.now = () => takenAt + ageMs + (performance.now() - began);
  }

  it('states the age of the snapshot in words', async () => {
    const { taken_at: takenAt } = suite.service.server.generations.current?.meta ?? {};
    for (const [ageMs, words] of [
      [-HOUR_MS, 'less than a minute ago'],
      [0, 'less than a minute ago'],
      [MINUTE_MS, '1 minute ago'],
      [59.5 * MINUTE_MS, '59 minutes ago'],
      [HOUR_MS, '1 hour ago'],
      [23.9 * HOUR_MS, '23 hours ago'],
      [DAY_MS, '1 day ago'],
      [400.5 * DAY_MS, '400 days ago'],
    ] as const) {
      setAge(ageMs);
      const { note } = (await get()).body as { note: string };
      expect(note).to.equal(
        `The data is a snapshot that is updated periodically; this one was taken at ${takenAt}, ${words}.`,
      );
    }
  });

  it('changes its ETag only when the age in words changes', async () => {
    setAge(2 * MINUTE_MS);
    const first = await get();
    const condition = { 'If-None-Match': first.headers.get('ETag') };
    setAge(2.5 * MINUTE_MS);
    expect(await get(condition)).to.include({ status: 304, text: '' });
    setAge(3 * MINUTE_MS);
    const second = await get(condition);
    expect(second.status).to.equal(200);
    expect(second.headers.get('X-Snapshot')).to.equal(first.headers.get('X-Snapshot'));
    expect((await get({ 'If-None-Match': second.headers.get('ETag') })).status).to.equal(304);
  });

  it('reports the numbers of changes in a header, which scripts of other origins can read', async () => {
    const others = packagesNamed(names)
      .slice(2)
      .map((entry) => (entry.no === 10 ? { ...entry, version: '2.0.0' } : entry));
    await suite.dataset.write(
      toCsv([...others, ...packagesNamed(['new']).map((entry) => ({ ...entry, no: 11 }))]),
    );
    await suite.service.rebuild('&force=true');
    const { headers } = await get();
    expect(headers.get(CHANGES)).to.equal('added=1, removed=2, updated=1');
    expect(headers.get('Access-Control-Expose-Headers')?.split(',')).to.include(CHANGES);
    const notModified = await get({ 'If-None-Match': headers.get('ETag') });
    expect(notModified.headers.get(CHANGES)).to.equal(headers.get(CHANGES));
    await suite.service.rebuild();
    expect((await get()).headers.get(CHANGES)).to.equal('added=0, removed=0, updated=0');
  });

  it('has no such header if the snapshot was not compared', async () => {
    const bare = await startService({ DATASET_URL: suite.dataset.url, CHANGES_RETENTION: '0' });
    try {
      await waitFor(async () => (await bare.get('/health')).status === 200, 'the first snapshot');
      await bare.idle();
      expect((await bare.get('/stats')).headers.has(CHANGES)).to.equal(false);
      await bare.rebuild();
      expect((await bare.get('/stats')).headers.has(CHANGES)).to.equal(false);
    } finally {
      await bare.end();
    }
  });
});
