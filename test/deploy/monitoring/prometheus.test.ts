import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { packagesNamed, toCsv } from '../../support/datasets.js';
import { DEPLOY, runInstalled, usePrometheus } from '../../support/prometheus.js';
import { startService, useService, type Service } from '../../support/service.js';
import { waitFor } from '../../support/wait-for.js';

/** With a limit, because without one there are no metrics of it. */
const ENV = { METRICS_PORT: '0', RATE_LIMIT_POINTS: '1000' };

/** Until Prometheus has scraped a change and evaluated the rules, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** Labels whose values are all present from the start, unlike those of `status` or `node`. */
const FIXED_LABELS = ['job', 'le', 'phase', 'policy', 'state'];

/** A metric that this Elasticsearch, which has no security, does not have: test/faults/security.test.ts reads it. */
const OF_KEYS = 'registry_search_api_key_expiration_timestamp_seconds';

type Labels = Record<string, string>;

interface RuleTests {
  tests: { input_series: { series: string }[] }[];
}

const { groups } = readYaml('alerts.yml') as { groups: { rules: { alert: string }[] }[] };
const { tests } = readYaml('alerts.test.yml') as RuleTests;
const { external_labels } = (readYaml('prometheus.yml') as { global: { external_labels: Labels } }).global;
const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));

function readYaml(name: string): unknown {
  return parse(readFileSync(new URL(name, DEPLOY), 'utf8'));
}

describe('The alert rules', function () {
  this.timeout(60_000);

  it('are valid in the configuration that loads them', async () => {
    const checked = await runInstalled('promtool', ['check', 'config', 'prometheus.yml']);
    expect(checked).to.include(`SUCCESS: ${alerts.length} rules found`);
  });

  it('fire exactly when deploy/alerts.test.yml says so', async () => {
    expect(await runInstalled('promtool', ['test', 'rules', 'alerts.test.yml'])).to.include('SUCCESS');
  });
});

type Target = Record<'scrapeUrl' | 'health' | 'lastError', string> & { labels: { job: string } };

type Rule = Record<'name' | 'health' | 'lastEvaluation', string> & { lastError?: string };

type Alert = Record<'labels' | 'annotations', Record<string, string>> & { state: string };

describe('Prometheus with two replicas', function () {
  this.timeout(2 * TIMEOUT_MS);
  const packages = packagesNamed(['alpha', 'alphabet', 'beta']);
  let second: Service | undefined;
  // Before that of the first replica, which removes the index: the second one would build another.
  after(async () => {
    await second?.stop();
  });
  const suite = useService(
    () => packages,
    () => ENV,
  );
  before(async () => {
    const { service, dataset } = suite;
    second = await startService({ ...ENV, DATASET_URL: dataset.url }, service.slug);
  });
  const replicas = () => [suite.service, second as Service] as const;
  const prometheus = usePrometheus(() => replicas().map(({ server }) => server.metricsUrl ?? ''));

  /** The value of an expression with one result. */
  const valueOf = async (expr: string) => (await prometheus.query(expr))[0];

  const loadedRules = async () => {
    const loaded = (await prometheus.get('rules')) as { groups: { rules: Rule[] }[] };
    return loaded.groups.flatMap(({ rules }) => rules);
  };

  /** Waits until all rules have been evaluated with samples that were scraped after this call. */
  const evaluated = async () => {
    const now = Date.now() / 1000;
    const scraped = `min(timestamp(up{job="registry-search"})) > ${now}`;
    await waitFor(async () => (await valueOf(scraped)) !== undefined, 'a scrape', TIMEOUT_MS);
    const since = Date.now();
    const isNew = ({ lastEvaluation }: Rule) => Date.parse(lastEvaluation) > since;
    await waitFor(async () => (await loadedRules()).every(isNew), 'an evaluation', TIMEOUT_MS);
  };

  /** The alerts that fire, without their values. */
  const firing = async () => {
    const { alerts: active } = (await prometheus.get('alerts')) as { alerts: Alert[] };
    return active
      .filter(({ state }) => state === 'firing')
      .map(({ labels, annotations }) => ({ labels, annotations }));
  };

  it('scrapes both without an error', async () => {
    let targets: Target[] = [];
    const areUp = async () => {
      const { activeTargets } = (await prometheus.get('targets?state=active')) as { activeTargets: Target[] };
      targets = activeTargets;
      return targets.filter(({ health }) => health === 'up').length === 2;
    };
    await waitFor(areUp, 'both targets', TIMEOUT_MS);
    const seen = targets.map(({ scrapeUrl, lastError, labels: { job } }) => ({ scrapeUrl, lastError, job }));
    const expected = replicas().map(({ server }) => `${server.metricsUrl}/metrics`);
    expect(seen).to.have.deep.members(
      expected.map((scrapeUrl) => ({ scrapeUrl, lastError: '', job: 'registry-search' })),
    );
  });

  it('adds up the requests and rebuilds of both', async () => {
    for (const replica of replicas()) {
      for (const q of ['alpha', 'beta', 'gamma']) await replica.get(`/search?q=${q}`);
      expect((await replica.rebuild()).status).to.equal(202);
    }
    const registry = `registry="${suite.service.slug}"`;
    for (const [expr, expected] of [
      [`sum(registry_search_http_request_duration_seconds_count{${registry}, route="/search"})`, 6],
      [`sum(registry_search_rebuilds_total{${registry}, outcome="rebuilt"})`, 2],
      [`count(registry_search_snapshot_packages{${registry}} == 3)`, 2],
      ['count(count by (registry) ({__name__=~"registry_search_.*"}))', 1],
    ] as const) {
      await waitFor(async () => (await valueOf(expr)) === expected, `${expected} = ${expr}`, TIMEOUT_MS);
    }
  });

  it('fires only the alert of a failed rebuild until another replica succeeds', async () => {
    const [first, other] = replicas();
    await suite.dataset.write('package_no,name,version,url\n1,broken\n');
    await first.rebuild();
    await waitFor(async () => (await firing()).length > 0, 'the alert', TIMEOUT_MS);
    expect(await firing()).to.deep.equal([
      {
        labels: { alertname: 'RegistrySearchRebuildFailed', registry: first.slug, severity: 'ticket' },
        annotations: {
          summary: `The last rebuild of ${first.slug} failed; the previous snapshot is still served`,
          runbook_url: `${external_labels.runbook_prefix}runbook.md#registrysearchrebuildfailed`,
        },
      },
    ]);
    await suite.dataset.write(toCsv(packages));
    await other.rebuild();
    await waitFor(async () => (await firing()).length === 0, 'the end of the alert', TIMEOUT_MS);
  });

  it('has all series of alerts.test.yml after a failed rebuild and a search', async () => {
    await suite.service.get('/search?q=alpha');
    await evaluated();
    const inputs = tests.flatMap((test) => test.input_series.map(({ series }) => series));
    const ofService = (one: string) => one.includes('job="registry-search"') && !one.startsWith(OF_KEYS);
    for (const series of new Set(inputs.filter(ofService))) {
      const [, name = '', text = ''] = /^(\w+)\{(.*)\}$/.exec(series) ?? [];
      const labels = [...text.matchAll(/(\w+)="(.*?)"/g)];
      const scraped = (await prometheus.get(`series?match[]=${name}`)) as Record<string, string>[];
      const isAlike = (one: Record<string, string>) =>
        Object.keys(one).length === labels.length + 1 &&
        labels.every(([, label = '', value]) =>
          FIXED_LABELS.includes(label) ? one[label] === value : label in one,
        );
      expect(scraped.some(isAlike), series).to.equal(true);
    }
  });
});
