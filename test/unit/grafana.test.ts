import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { parse } from 'yaml';
import { dashboard, panels } from '../support/grafana.js';

/** Names and labels in the list of docs/operations.md, with their prefix. */
function documentedMetrics(): Map<string, string[]> {
  const guide = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  const [, section = ''] = /^## Metrics\n(.*?)^## /ms.exec(guide) ?? [];
  const rows = [...section.matchAll(/^(\w+)(?:\{([\w,]+)\})? {2}/gm)];
  return new Map(rows.map(([, name = '', labels]) => [`registry_search_${name}`, labels?.split(',') ?? []]));
}

/** Names of prom-client's metrics of the process. */
function defaultMetrics(): Set<string> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return new Set(registry.getMetricsAsArray().map(({ name }) => name));
}

/** The selectors in a query: the name of a metric, without the suffix of a histogram's series, and its matchers. */
function selectorsIn(expr: string): { name: string; matchers: string }[] {
  return [...expr.matchAll(/\b([a-zA-Z_]\w*)\{([^}]*)\}/g)].map(([, name = '', matchers = '']) => ({
    name: name.replace(/(?<=_seconds)_(?:bucket|count|sum)$/, ''),
    matchers,
  }));
}

describe('The dashboard deploy/grafana/registry-search.json', () => {
  const documented = documentedMetrics();
  const known = new Set([...documented.keys(), ...defaultMetrics()]);

  it('has a stable address, refreshes, and lets the reader choose the data source and the registry', () => {
    expect(dashboard).to.include({ uid: 'registry-search', refresh: '30s' });
    const [source, registry, ...others] = dashboard.templating.list;
    expect(others).to.deep.equal([]);
    expect(source).to.include({ name: 'datasource', type: 'datasource' });
    expect(registry).to.include({ name: 'registry', type: 'query' });
    const query = typeof registry?.query === 'object' ? registry.query.query : registry?.query;
    const [, metric] = /^label_values\((\w+), registry\)$/.exec(query ?? '') ?? [];
    expect(documented).to.include.keys(metric ?? 'no metric');
  });

  it('has unique ids and titles', () => {
    for (const key of ['id', 'title'] as const)
      expect(new Set(dashboard.panels.map((panel) => panel[key])).size, key).to.equal(
        dashboard.panels.length,
      );
  });

  it('covers every metric of the service', () => {
    const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    const used = new Set(expressions.flatMap(selectorsIn).map(({ name }) => name));
    expect([...documented.keys()].filter((name) => !used.has(name))).to.deep.equal([]);
  });

  for (const { title, description = '', fieldConfig, targets = [] } of panels) {
    describe(title, () => {
      it('has a one-sentence description and a unit', () => {
        expect(title).not.to.equal('');
        expect(description).to.match(/^[A-Z].*\.$/);
        expect(description).not.to.match(/\. [A-Z]/);
        expect(fieldConfig?.defaults.unit ?? '').not.to.equal('');
      });

      it('queries metrics and labels that exist, of the chosen registry', () => {
        expect(targets).not.to.deep.equal([]);
        for (const { expr } of targets) {
          const selectors = selectorsIn(expr);
          expect(selectors, expr).not.to.deep.equal([]);
          // No metric without matchers: those are found by their prefixes.
          const mentioned = [...expr.matchAll(/\b(?:registry_search|nodejs|process)_\w+/g)];
          expect(mentioned, expr).to.have.length(selectors.length);
          for (const { name, matchers } of selectors) {
            expect(known, expr).to.include(name);
            const labels = [...matchers.matchAll(/(\w+)\s*[!=]/g)].map(([, label]) => label);
            expect(labels.shift(), expr).to.equal('registry');
            expect(matchers, expr).to.match(/^registry="\$registry"/);
            expect([...(documented.get(name) ?? []), 'registry'], expr).to.include.members(labels);
          }
        }
      });

      it('has no gap for metrics that exist only after an event: it says why 0 or -1 is shown', () => {
        const filled = targets.filter(({ expr }) => /\bor\b.*(?:vector|\* )/.test(expr));
        if (filled.length > 0)
          expect(description).to.match(/`vector\(0\)`|`or` adds|-1 \(none\)|`none` at 0/);
      });
    });
  }
});

describe('The Grafana of docker-compose.yml', () => {
  const ROOT = new URL('../../', import.meta.url);
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests assert on its shape
  const yaml = (path: string): any => parse(readFileSync(new URL(path, ROOT), 'utf8'), { merge: true });
  const { grafana, prometheus } = yaml('docker-compose.yml').services;
  const PROVIDER = 'provisioning/dashboards/registry-search.yml';
  const SOURCE = 'provisioning/datasources/prometheus.yml';

  it('loads this dashboard and shows it first', () => {
    const folder: string = yaml(`deploy/grafana/${PROVIDER}`).providers[0].options.path;
    const path = `${folder}/registry-search.json`;
    const provisioning = [PROVIDER, SOURCE].map(
      (file) => `./deploy/grafana/${file}:/etc/grafana/${file}:ro,z`,
    );
    const mounts = [...provisioning, `./deploy/grafana/registry-search.json:${path}:ro,z`];
    expect(grafana.volumes).to.have.members(mounts);
    expect(grafana.environment).to.include({ GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH: path });
  });

  it('reads from the Prometheus next to it', () => {
    const { datasources } = yaml(`deploy/grafana/${SOURCE}`);
    expect(datasources).to.have.length(1);
    expect(datasources[0]).to.include({ url: 'http://prometheus:9090', isDefault: true });
    expect(grafana.networks).not.to.deep.equal([]);
    expect(prometheus.networks).to.include.members(grafana.networks);
  });

  it('has no account, and lets visitors only read', () => {
    expect(grafana.environment).to.include({
      GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: 'true',
      GF_AUTH_ANONYMOUS_ORG_ROLE: 'Viewer',
      GF_AUTH_DISABLE_LOGIN_FORM: 'true',
      GF_AUTH_BASIC_ENABLED: 'false',
    });
  });

  it('starts only with the profile `monitoring`, as Prometheus does', () => {
    for (const { profiles } of [grafana, prometheus]) expect(profiles).to.deep.equal(['monitoring']);
  });
});
