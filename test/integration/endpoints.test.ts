import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { SHARED_PACKAGES as PACKAGES, useService, useSharedService } from '../support/service.js';

describe('On a snapshot,', () => {
  const suite = useSharedService();
  const get = (path: string, init?: RequestInit) => suite.service.get(path, init);

  it('GET /ping returns pong', async () => {
    expect(await get('/ping')).to.deep.include({ status: 200, body: { ping: 'pong' } });
  });

  it('GET /health returns ok and the number of packages', async () => {
    const body = { status: 'ok', total_packages: PACKAGES.length };
    expect(await get('/health')).to.deep.include({ status: 200, body });
  });

  it('GET /ready returns true', async () => {
    expect(await get('/ready')).to.deep.include({ status: 200, body: { ready: true } });
  });

  it('GET /stats returns the size, the website of the registry and the time of the snapshot', async () => {
    const total = `total_${suite.service.slug}_packages`;
    const { status, body } = await get('/stats');
    expect(status).to.equal(200);
    expect(body).to.have.all.keys(total, 'source', 'note', 'taken_at');
    expect(body).to.include({ [total]: PACKAGES.length, source: 'tracker.debian.org' });
    expect(body.note).to.match(/snapshot .*updated periodically.*\d{4}-\d\d-\d\dT\d\d:\d\d.*\.$/);
    expect(body.note).to.include(`taken at ${body.taken_at}.`);
  });

  describe('GET /browse', () => {
    it('returns the first page of 200 by default, by number, without ranks', async () => {
      const { status, body, headers } = await get('/browse');
      expect(status).to.equal(200);
      expect(headers.get('Content-Type')).to.equal('application/json; charset=utf-8');
      expect(body).to.deep.equal({ page: 1, limit: 200, results: PACKAGES.slice(0, 200) });
    });

    it('returns the limit that it has reduced to the maximum', async () => {
      const { body } = await get('/browse?page=2&limit=501');
      expect(body).to.deep.equal({ page: 2, limit: 500, results: PACKAGES.slice(500, 1000) });
    });

    it('returns an empty page far past the end', async () => {
      const body = { page: Number.MAX_SAFE_INTEGER, limit: 200, results: [] };
      expect(await get(`/browse?page=${body.page}`)).to.deep.include({ status: 200, body });
    });
  });

  describe('GET /search', () => {
    it('reports that more match than the default limit of 250', async () => {
      const { body, headers } = await get('/search?q=lib');
      expect(body.count).to.equal(250);
      expect(body.results).to.have.length(250);
      expect(headers.get('X-Results-Truncated')).to.equal('true');
    });
  });

  describe('GET /debug-ip', () => {
    const secret = 'not-for-anyone';
    /** The response to a client with these headers, which must not show the secret. */
    const shown = async (headers: Record<string, string>, path = '/debug-ip') => {
      const answer = await get(path, { headers });
      expect(answer.status).to.equal(200);
      expect(answer.text).not.to.contain(secret);
      return answer;
    };

    it('shows the client as the limits see it', async () => {
      const { body } = await shown({ 'X-Forwarded-For': '203.0.113.9' });
      expect(body).to.include({ ip: '127.0.0.1', peer: '127.0.0.1', limit_key: '127.0.0.1' });
      expect(body.forwarded_for).to.deep.equal(['203.0.113.9']);
      expect(body.bypass).to.deep.equal({ valid: false, valid_for_seconds: 0 });
    });

    it('shows headers with addresses', async () => {
      const addresses = {
        'user-agent': 'a test',
        'x-forwarded-for': '203.0.113.9',
        'x-real-ip': '203.0.113.9',
        'fly-client-ip': '2001:db8::9',
        'x-azure-clientip': '203.0.113.9',
        'cloudfront-viewer-address': '203.0.113.9:46532',
        'x-vercel-forwarded-for': '203.0.113.9, [2001:db8::9]:443',
      };
      expect((await shown(addresses)).body.headers).to.include(addresses);
    });

    it('redacts other headers', async () => {
      const names = [
        'authorization',
        'cookie',
        'x-auth-user',
        'x-harmless',
        'x-session-id',
        'x-bypass-token',
      ];
      const values = {
        ...Object.fromEntries(names.map((name) => [name, secret])),
        referer: `https://api.example/rebuild?%73ecret=${secret}`,
        'x-empty': '',
        'x-hex': 'fee1dead',
        'x-mixed': `203.0.113.9, ${secret}`,
      };
      const { body } = await shown(values, `/debug-ip?secret=${secret}`);
      for (const name of Object.keys(values)) expect(body.headers).to.have.property(name, '[redacted]');
    });

    it('redacts queries of addresses in headers', async () => {
      const claimed = await shown({ 'X-Forwarded-For': `unknown?%73ecret=${secret}` });
      expect(claimed.body.forwarded_for).to.deep.equal(['unknown?[redacted]']);
      const { body } = await shown({
        via: `1.1 https://proxy.example/?a=1;%73ecret=${secret}, 1.1 other%3Fsecret=${secret}`,
        'x-original-forwarded-for': `unknown, 203.0.113.9?a=${secret}`,
        forwarded: `for=203.0.113.9;host="api.example?${secret}"`,
        'x-forwarded-host': `api.example?${secret}`,
      });
      expect(body.headers).to.include({
        via: '1.1 https://proxy.example/?[redacted] 1.1 other?[redacted]',
        'x-original-forwarded-for': 'unknown, 203.0.113.9?[redacted]',
        forwarded: 'for=203.0.113.9;host="api.example?[redacted]',
      });
    });
  });
});

describe('GET /stats', () => {
  const packages = packagesNamed(Array.from({ length: 10 }, (_, i) => `package-${i}`));
  const suite = useService(() => packages);
  const get = (headers = {}) => suite.service.get('/stats', { headers });

  it('states the time of the snapshot in Last-Modified, too', async () => {
    const { body, headers } = await get();
    expect(headers.get('Last-Modified')).to.equal(new Date(body.taken_at as string).toUTCString());
  });

  it('reports the numbers of changes in a header', async () => {
    const [, , ...others] = packages.map((entry) =>
      entry.no === 10 ? { ...entry, version: '2.0.0' } : entry,
    );
    const changed = [...others, ...packagesNamed(['new']).map((entry) => ({ ...entry, no: 11 }))];
    await suite.publish(changed);
    const { headers } = await get();
    expect(headers.get('X-Snapshot-Changes')).to.equal('added=1, removed=2, updated=1');
    const notModified = await get({ 'If-None-Match': headers.get('ETag') });
    expect(notModified.status).to.equal(304);
    expect(notModified.headers.get('X-Snapshot-Changes')).to.equal('added=1, removed=2, updated=1');
    await suite.publish(changed);
    expect((await get()).headers.get('X-Snapshot-Changes')).to.equal('added=0, removed=0, updated=0');
  });
});
