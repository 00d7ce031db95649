import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { scrape } from '../support/metrics.js';
import { useProxiedService } from '../support/proxied-service.js';
import { BYPASS_SECRET, logLines, REBUILD, REBUILD_SECRET } from '../support/service.js';

const ENV = { METRICS_PORT: '0', RATE_LIMIT_POINTS: '100', TRUSTED_PROXIES: '127.0.0.1' };
const PACKAGES = packagesNamed(['alpha', 'alphabet', 'beta']);

describe('Observability:', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => PACKAGES, ENV);

  describe('metrics', () => {
    const get = (path: string, headers: Record<string, string> = {}) => suite.service.get(path, { headers });
    const look = () => scrape(suite.service.server.metricsUrl);

    /** Runs `act`. @returns how much metrics have grown meanwhile, and the metrics afterwards. */
    async function growth(act: () => Promise<unknown>) {
      const before = await look();
      await act();
      const after = await look();
      const grown = (name: string, labels: Record<string, string> = {}) =>
        (after.sum(name, labels) ?? 0) - (before.sum(name, labels) ?? 0);
      return { grown, after };
    }

    it('count requests by route and status, with one label for all unknown paths', async () => {
      const paths = ['/search?q=alpha', '/search?q=a', '/packages/alpha', '/packages/a/b', '/packages/'];
      const { grown, after } = await growth(async () => {
        for (const path of [...paths, '/nothing', '/search/alpha', '/__proto__']) await get(path);
      });
      const requests = (labels: Record<string, string>) =>
        grown('http_request_duration_seconds_count', labels);
      expect(requests({ route: '/search', status: '200' })).to.equal(1);
      expect(requests({ route: '/search', status: '400' })).to.equal(1);
      expect(requests({ route: '/packages/{name}' })).to.equal(3);
      expect(requests({ route: 'none', status: '404' })).to.equal(3);
      expect(requests({})).to.equal(8);
      expect(grown('http_request_duration_seconds_sum', { route: '/search' })).to.be.within(0.000_01, 5);
      for (const { labels } of after.all('http_request_duration_seconds_count')) {
        expect(labels['registry']).to.equal(suite.service.slug);
        expect(labels['route']).not.to.contain('nothing');
      }
    });

    it('report the cache and the time of Elasticsearch', async () => {
      const { grown, after } = await growth(async () => {
        const { headers } = await get('/search?q=beta');
        await get('/search?q=beta');
        await get('/search?q=beta', { 'If-None-Match': headers.get('ETag') ?? '' });
      });
      for (const outcome of ['miss', 'hit', 'not_modified'])
        expect(grown('cache_requests_total', { outcome }), outcome).to.equal(1);
      expect(grown('cache_bytes')).to.be.within(500, 5000);
      expect(after.sum('cache_max_bytes')).to.equal(64 * 2 ** 20);
      const answered = { node: suite.proxy.url, outcome: 'answered' };
      expect(grown('elasticsearch_request_duration_seconds_count', answered)).to.be.within(1, 2);
      for (const kind of ['searches', 'similar'])
        for (const name of ['running', 'waiting', 'refused_total'])
          expect(after.sum(`${kind}_${name}`), `${kind}_${name}`).to.equal(0);
    });

    it('report how many requests the limits passed', async () => {
      const { grown, after } = await growth(async () => {
        const client = { 'X-Forwarded-For': '198.51.100.1' };
        for (let i = 0; i < 103; i++) await get('/stats', client);
        await get('/rebuild?secret=wrong', client);
        const { body } = await get(`/get-bypass?secret=${BYPASS_SECRET}`, client);
        await get('/stats', { ...client, 'X-Bypass-Token': body.bypass_token as string });
      });
      const requests = (policy: string, outcome: string) =>
        grown('limit_requests_total', { policy, outcome });
      expect(requests('reading', 'passed')).to.equal(100);
      expect(requests('reading', 'limited')).to.equal(3);
      expect(requests('reading', 'bypassed')).to.equal(1);
      expect(requests('secrets', 'passed')).to.equal(2);
      expect(after.sum('limit_fallbacks_total', { policy: 'reading' })).to.equal(0);
      expect(after.sum('redis_connected')).to.equal(1);
    });

    it('report the served snapshot', async () => {
      const now = Date.now() / 1000;
      const first = await look();
      expect(first.sum('engine_state', { state: 'present' })).to.equal(1);
      expect(first.sum('engine_state')).to.equal(1);
      expect(first.sum('snapshot_packages')).to.equal(3);
      for (const name of ['built', 'taken'])
        expect(first.sum(`snapshot_${name}_timestamp_seconds`), name).to.be.closeTo(now, 60);
      expect(first.sum('rebuild_phase')).to.equal(0);
    });

    /** Rebuilds from a dataset. @returns how metrics have changed. */
    const rebuild = (csv: string) =>
      growth(async () => {
        await suite.dataset.write(csv);
        await suite.service.rebuild();
      });

    it('report when a rebuild failed', async () => {
      const { grown, after } = await rebuild('package_no,name,version,url\n1,"alpha');
      expect(grown('rebuilds_total', { outcome: 'failed' })).to.equal(1);
      const [failure] = after.all('rebuild_last_failure_timestamp_seconds');
      expect(failure?.value).to.be.closeTo(Date.now() / 1000, 60);
    });

    it('report a rebuild and its changes', async () => {
      const added = packagesNamed(['1', '2', '3', 'delta']).slice(3);
      const { grown, after } = await rebuild(toCsv([...PACKAGES, ...added]));
      expect(grown('rebuilds_total', { outcome: 'rebuilt' })).to.equal(1);
      expect(after.sum('rebuild_last_success_timestamp_seconds')).to.be.closeTo(Date.now() / 1000, 60);
      expect(after.all('rebuild_last_failure_timestamp_seconds')).to.deep.equal([]);
      expect(after.sum('snapshot_packages')).to.equal(4);
      const changes = after.all('snapshot_changes').map(({ labels, value }) => [labels['change'], value]);
      expect(Object.fromEntries(changes)).to.deep.equal({ added: 1, removed: 0, updated: 0 });
      expect(grown('changes_snapshots')).to.equal(1);
    });

    it('are served only on their own port, which serves nothing else', async () => {
      expect((await suite.service.get('/metrics')).status).to.equal(404);
      const url = suite.service.server.metricsUrl ?? '';
      expect((await fetch(`${url}/search?q=alpha`)).status).to.equal(404);
      expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).to.equal(404);
    });

    it('are exactly those in the list of docs/operations.md', async () => {
      const text = await (await fetch(`${suite.service.server.metricsUrl}/metrics`)).text();
      const guide = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
      const [, section = ''] = /^## Metrics\n(.*?)^## /ms.exec(guide) ?? [];
      const namesIn = (source: string, pattern: RegExp) =>
        [...source.matchAll(pattern)].map(([, name]) => name).sort();
      expect(namesIn(section, /^(\w+)(?:\{[\w,]+\})? {2}/gm)).to.deep.equal(
        namesIn(text, /^# TYPE registry_search_(\w+)/gm),
      );
    });

    it('report the phase and the progress of a rebuild', async () => {
      // Three requests of a megabyte.
      const packages = bundledPackages()
        .slice(0, 2000)
        .map((entry) => ({ ...entry, url: entry.url.padEnd(2000, '/') }));
      await suite.dataset.write(toCsv(packages));
      let requests = 0;
      const hold = suite.proxy.hold('before', (_method, path) => path.includes('_bulk') && ++requests === 3);
      await suite.service.get(`${REBUILD}&force=true`);
      await hold.arrived;
      await suite.service.loading();
      const seen = await scrape(suite.service.server.metricsUrl);
      expect(seen.sum('rebuild_phase', { phase: 'loading' })).to.equal(1);
      expect(seen.sum('rebuild_phase')).to.equal(1);
      expect(seen.sum('rebuild_rows')).to.be.within(1, packages.length);
      expect(seen.sum('rebuild_rows_expected')).to.equal(packages.length);
      expect(seen.sum('rebuild_memory_bytes')).to.be.within(30e6, 400e6);
      expect(seen.sum('rebuild_cpu_seconds')).to.be.within(0.1, 60);
      hold.release();
      await suite.service.idle();
      expect((await scrape(suite.service.server.metricsUrl)).sum('rebuild_phase')).to.equal(0);
    });
  });

  describe('a request', () => {
    const holdSearch = () => suite.proxy.hold('before', (_method, path) => path.includes('/_msearch'));
    const ID = 'X-Request-Id';

    it('gets a unique id in its response, unless it has a well-formed one', async () => {
      const idOf = async (path: string, init?: RequestInit) =>
        (await suite.service.get(path, init)).headers.get(ID);
      const given = (id: string) => ({ headers: { [ID]: id } });
      expect(await idOf('/ping', given('proxy:1.2-3_4'))).to.equal('proxy:1.2-3_4');
      const paths = [
        '/ping',
        '/search?q=alpha',
        '/search?q=a',
        '/nothing',
        '/rebuild?secret=wrong',
        '/health',
      ];
      const ids = await Promise.all([
        ...paths.map((path) => idOf(path)),
        idOf('/ping', { method: 'POST' }),
        ...['a b', 'x'.repeat(65), '{"a":1}', 'é'].map((malformed) => idOf('/ping', given(malformed))),
      ]);
      expect(new Set(ids).size).to.equal(ids.length);
      for (const id of ids) expect(id).to.match(/^[0-9a-f-]{36}$/);
    });

    it('passes its id to Elasticsearch', async () => {
      const hold = holdSearch();
      const asked = suite.service.get('/search?q=alp', { headers: { [ID]: 'one-of-many' } });
      expect((await hold.arrived)['x-opaque-id']).to.equal('one-of-many');
      hold.release();
      expect((await asked).headers.get(ID)).to.equal('one-of-many');
    });

    it('that is slow is logged with its id and its query; a failure is counted', async () => {
      const hold = holdSearch();
      const asked = suite.service.get('/search?q=bet', { headers: { [ID]: 'slow-one' } });
      await hold.arrived;
      expect((await asked).status).to.equal(503);
      hold.release();
      const line = logLines.find(({ msg, request_id: id }) => msg === 'slow search' && id === 'slow-one');
      expect(line).to.include({ level: 40, q: 'bet', limit: 250 });
      expect(line?.['ms']).to.be.within(1400, 5000);
      const failed = { node: suite.proxy.url, outcome: 'unavailable' };
      const seen = await scrape(suite.service.server.metricsUrl);
      expect(seen.sum('elasticsearch_request_duration_seconds_count', failed)).to.equal(1);
    });

    it('is logged at level debug with its id, without its query', async () => {
      await suite.service.get(`/rebuild?secret=not${REBUILD_SECRET}`, { headers: { [ID]: 'told' } });
      const line = logLines.find(({ msg, request_id: id }) => msg === 'request completed' && id === 'told');
      expect(line).to.include({ level: 20, method: 'GET', path: '/rebuild', status: 403 });
    });
  });
});
