import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { useProxiedService } from '../support/proxied-service.js';
import { logLines, REBUILD, REBUILD_SECRET, useService } from '../support/service.js';

const METRICS = { METRICS_PORT: '0' };

/** Fetches and parses the metrics of a service. */
async function scrape(metricsUrl: string | undefined): Promise<Scraped> {
  const response = await fetch(`${metricsUrl}/metrics`);
  expect(response.status).to.equal(200);
  expect(response.headers.get('Content-Type')).to.match(/^text\/plain; version=0\.0\.4/);
  return new Scraped(await response.text());
}

/** Parses the part of the Prometheus text format that the service uses. */
class Scraped {
  readonly #samples: { name: string; labels: Record<string, string>; value: number }[];

  constructor(text: string) {
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    this.#samples = lines.map((line) => {
      const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      expect(name, line).not.to.equal('');
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [
        label,
        text,
      ]);
      return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
    });
  }

  get names(): Set<string> {
    return new Set(this.#samples.map(({ name }) => name));
  }

  /** The sum of the service's samples with these labels; undefined if there are none. */
  sum(name: string, labels: Record<string, string> = {}): number | undefined {
    const found = this.all(name, labels).map(({ value }) => value);
    return found.length === 0 ? undefined : found.reduce((a, b) => a + b);
  }

  all(name: string, labels: Record<string, string> = {}) {
    return this.#samples.filter(
      (sample) =>
        sample.name === `registry_search_${name}` &&
        Object.entries(labels).every(([label, text]) => sample.labels[label] === text),
    );
  }
}

describe('Metrics', () => {
  const packages = packagesNamed(['alpha', 'alphabet', 'beta']);
  const suite = useService(
    () => packages,
    () => ({ ...METRICS, RATE_LIMIT_POINTS: '11' }),
  );
  const look = () => scrape(suite.service.server.metricsUrl);

  it('count requests by route and status, with one label for all without a route', async () => {
    const get = (path: string, init?: RequestInit) => suite.service.get(path, init);
    await get('/search?q=alpha');
    await get('/search?q=a');
    for (const path of ['/packages/alpha', '/packages/a/b', '/packages/']) await get(path);
    for (const path of ['/nothing', '/search/alpha', '/__proto__']) await get(path);
    const seen = await look();
    const requests = (labels: Record<string, string>) =>
      seen.sum('http_request_duration_seconds_count', labels);
    expect(requests({ route: '/search', status: '200' })).to.equal(1);
    expect(requests({ route: '/search', status: '400' })).to.equal(1);
    expect(requests({ route: 'none', status: '404' })).to.equal(3);
    const routes = seen.all('http_request_duration_seconds_count').map(({ labels }) => labels['route']);
    expect(new Set(routes)).to.deep.equal(new Set(['/openapi.json', '/search', '/packages/{name}', 'none']));
    expect(requests({ route: '/packages/{name}' })).to.equal(3);
    expect(seen.sum('http_request_duration_seconds_sum', { route: '/search' })).to.be.within(0.000_01, 5);
  });

  it('name the registry on every sample', async () => {
    const samples = (await look()).all('http_request_duration_seconds_count');
    for (const { labels } of samples) expect(labels['registry']).to.equal(suite.service.slug);
  });

  it('report cache outcomes, the size of the cache, and the time of Elasticsearch', async () => {
    const before = await look();
    const first = await suite.service.get('/search?q=beta');
    await suite.service.get('/search?q=beta');
    await suite.service.get('/search?q=beta', {
      headers: { 'If-None-Match': first.headers.get('ETag') ?? '' },
    });
    const after = await look();
    const grown = (name: string, labels: Record<string, string>) =>
      (after.sum(name, labels) ?? 0) - (before.sum(name, labels) ?? 0);
    expect(grown('cache_requests_total', { outcome: 'miss' })).to.equal(1);
    expect(grown('cache_requests_total', { outcome: 'hit' })).to.equal(1);
    expect(grown('cache_requests_total', { outcome: 'not_modified' })).to.equal(1);
    expect(grown('cache_bytes', {})).to.be.within(500, 5000);
    expect(after.sum('cache_max_bytes')).to.equal(64 * 2 ** 20);
    const { url } = (await engines()).elasticsearch;
    const answered = { node: url, outcome: 'answered' };
    expect(grown('elasticsearch_request_duration_seconds_count', answered)).to.be.within(1, 2);
    expect(after.sum('searches_running')).to.equal(0);
    expect(after.sum('searches_waiting')).to.equal(0);
    expect(after.sum('searches_refused_total')).to.equal(0);
    for (const name of ['running', 'waiting', 'refused_total'])
      expect(after.sum(`similar_${name}`)).to.equal(0);
  });

  it('report how many requests the limits passed', async () => {
    const get = (path: string, init?: RequestInit) => suite.service.get(path, init);
    for (let i = 0; i < 10; i++) await get('/stats');
    await get('/rebuild?secret=wrong');
    const token = (await get('/get-bypass?secret=bypass-change-me')).body.bypass_token as string;
    await get('/stats', { headers: { 'X-Bypass-Token': token } });
    const seen = await look();
    const reading = (outcome: string) => seen.sum('limit_requests_total', { budget: 'reading', outcome });
    expect(reading('passed')).to.equal(11);
    expect(reading('limited')).to.be.greaterThan(2);
    expect(reading('bypassed')).to.equal(1);
    expect(seen.sum('limit_requests_total', { budget: 'secrets', outcome: 'passed' })).to.equal(2);
    expect(seen.sum('limit_fallbacks_total', { budget: 'reading' })).to.equal(0);
    expect(seen.sum('redis_connected')).to.equal(1);
  });

  it('report the served generation, and the outcomes of rebuilds', async () => {
    const now = Date.now() / 1000;
    const first = await look();
    expect(first.sum('engine_state', { state: 'present' })).to.equal(1);
    expect(first.sum('engine_state')).to.equal(1);
    expect(first.sum('generation_packages')).to.equal(3);
    expect(first.sum('generation_built_timestamp_seconds')).to.be.closeTo(now, 60);
    expect(first.sum('generation_taken_timestamp_seconds')).to.be.closeTo(now, 60);
    expect(first.all('generation_changes')).to.deep.equal([]);
    expect(first.sum('changes_snapshots')).to.equal(0);
    expect(first.sum('rebuilds_total', { outcome: 'rebuilt' })).to.equal(1);
    expect(first.sum('rebuild_duration_seconds')).to.be.within(0.05, 60);
    expect(first.sum('rebuild_last_success_timestamp_seconds')).to.be.closeTo(now, 60);
    expect(first.sum('rebuild_last_failure_timestamp_seconds')).to.equal(undefined);
    expect(first.sum('rebuild_phase')).to.equal(0);

    await suite.dataset.write('package_no,name,version,url\n1,"alpha');
    await suite.service.rebuild();
    const failed = await look();
    expect(failed.sum('rebuilds_total', { outcome: 'failed' })).to.equal(1);
    const [failure] = failed.all('rebuild_last_failure_timestamp_seconds');
    expect(failure?.labels['reason']).to.match(/^line 2: /);
    expect(failure?.value).to.be.closeTo(now, 60);

    await suite.dataset.write(toCsv([...packages, ...packagesNamed(['1', '2', '3', 'delta']).slice(3)]));
    await suite.service.rebuild();
    const mended = await look();
    expect(mended.sum('generation_packages')).to.equal(4);
    const changes = mended.all('generation_changes').map(({ labels, value }) => [labels['change'], value]);
    expect(changes).to.deep.equal([
      ['added', 1],
      ['removed', 0],
      ['updated', 0],
    ]);
    expect(mended.sum('changes_snapshots')).to.equal(1);
    expect(mended.all('rebuild_last_failure_timestamp_seconds')).to.deep.equal([]);
  });

  it('are served only on their own port, which serves nothing else', async () => {
    expect((await suite.service.get('/metrics')).status).to.equal(404);
    const url = suite.service.server.metricsUrl ?? '';
    expect((await fetch(`${url}/search?q=alpha`)).status).to.equal(404);
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).to.equal(404);
  });

  it('are exactly those in the table of docs/operations.md', async () => {
    const text = await (await fetch(`${suite.service.server.metricsUrl}/metrics`)).text();
    const guide = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
    const [, section = ''] = /^## Metrics\n(.*?)^## /ms.exec(guide) ?? [];
    const namesIn = (source: string, pattern: RegExp) =>
      [...source.matchAll(pattern)].map(([, name]) => name).sort();
    expect(namesIn(section, /^\| `(\w+)`/gm)).to.deep.equal(namesIn(text, /^# TYPE registry_search_(\w+)/gm));
  });

  it('include all that the alert rules use, and the runbook explains each alert', async () => {
    const file = (name: string) => readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8');
    const { groups } = parse(file('alerts.yml')) as {
      groups: { rules: { alert: string; expr: string; annotations: { runbook: string } }[] }[];
    };
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.length).to.be.greaterThan(10);
    // This one is present only after a failure, which the previous test covers.
    const names = (await look()).names.add('registry_search_rebuild_last_failure_timestamp_seconds');
    const headings = new Set([...file('runbook.md').matchAll(/^## (\w+)$/gm)].map(([, heading]) => heading));
    for (const { alert, expr, annotations } of rules) {
      for (const [name] of expr.matchAll(/\b(registry_search|nodejs)_\w+/g))
        expect(names, alert).to.include(name);
      expect(annotations.runbook).to.equal(`runbook.md#${alert.toLowerCase()}`);
      expect(headings).to.include(alert);
    }
    expect(headings.size).to.equal(rules.length);
  });
});

describe('Metrics without recorded changes', () => {
  const suite = useService(
    () => packagesNamed(['alpha', 'beta']),
    () => ({ ...METRICS, CHANGES_RETENTION: '0' }),
  );

  it('have no counts of changes', async () => {
    await suite.service.rebuild();
    const seen = await scrape(suite.service.server.metricsUrl);
    expect(seen.sum('generation_packages')).to.equal(2);
    expect(seen.all('generation_changes')).to.deep.equal([]);
    expect(seen.all('changes_snapshots')).to.deep.equal([]);
  });
});

describe('Metrics during a rebuild', function () {
  this.timeout(ENGINES_TIMEOUT_MS);
  const packages = bundledPackages();
  const suite = useService(
    () => packages.slice(0, 1000),
    () => METRICS,
  );

  it('report its phase and progress', async () => {
    await suite.dataset.write(toCsv(packages));
    await suite.service.get(REBUILD);
    await suite.service.loading();
    const seen = await scrape(suite.service.server.metricsUrl);
    expect(seen.sum('rebuild_phase', { phase: 'loading' })).to.equal(1);
    expect(seen.sum('rebuild_phase')).to.equal(1);
    expect(seen.sum('rebuild_rows')).to.be.within(1, 63_666);
    expect(seen.sum('rebuild_rows_expected')).to.equal(63_666);
    expect(seen.sum('rebuild_memory_bytes')).to.be.within(30e6, 400e6);
    expect(seen.sum('rebuild_cpu_seconds')).to.be.within(0.1, 60);
    await suite.service.idle();
  });
});

describe('A request', function () {
  this.timeout(30_000);
  const suite = useProxiedService(() => packagesNamed(['alpha', 'beta']), METRICS);

  const holdSearch = () => suite.proxy.hold('before', (_method, path) => path.includes('/_msearch'));
  const ID = 'X-Request-Id';

  it('gets a unique id in its response', async () => {
    const seen = new Set<string | null>();
    const paths = ['/ping', '/search?q=alpha', '/search?q=a', '/nothing', '/rebuild?secret=wrong', '/health'];
    for (const path of paths) seen.add((await suite.service.get(path)).headers.get(ID));
    seen.add((await suite.service.get('/ping', { method: 'POST' })).headers.get(ID));
    expect(seen.size).to.equal(paths.length + 1);
    for (const id of seen) expect(id).to.match(/^[0-9a-f-]{36}$/);
  });

  it('keeps its given id if that is well-formed', async () => {
    const idOf = async (given: string) =>
      (await suite.service.get('/ping', { headers: { [ID]: given } })).headers.get(ID);
    expect(await idOf('proxy:1.2-3_4')).to.equal('proxy:1.2-3_4');
    for (const bad of ['a b', 'x'.repeat(65), '{"a":1}', 'é']) {
      expect(await idOf(bad), bad).to.match(/^[0-9a-f-]{36}$/);
    }
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

  it('is logged at level debug with its id, and without its query', async () => {
    await suite.service.get(`/rebuild?secret=not${REBUILD_SECRET}`, { headers: { [ID]: 'told' } });
    const line = logLines.find(({ msg, request_id: id }) => msg === 'request completed' && id === 'told');
    expect(line).to.include({ level: 20, method: 'GET', path: '/rebuild', status: 403 });
  });
});
