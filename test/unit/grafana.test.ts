import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { dashboard, panels } from '../support/grafana.js';

/** Whether metrics exist is tested on a real Prometheus, by test/deploy/monitoring. */

const ROOT = new URL('../../', import.meta.url);

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests assert on its shape
const yaml = (path: string): any => parse(readFileSync(new URL(path, ROOT), 'utf8'), { merge: true });

describe('The dashboard deploy/grafana/registry-search.json', () => {
  it('has a stable address', () => {
    expect(dashboard.uid).to.equal('registry-search');
  });

  it('lets the reader choose the data source and the registry', () => {
    const variables = dashboard.templating.list.map(({ name, type }) => [name, type]);
    expect(variables).to.deep.equal([
      ['datasource', 'datasource'],
      ['registry', 'query'],
    ]);
  });

  it('queries only metrics of the chosen registry', () => {
    for (const { expr } of panels.flatMap(({ targets = [] }) => targets)) {
      const selectors = expr.match(/\b(?:registry_search|nodejs|process)_\w+/g);
      expect(expr.match(/\w\{registry="\$registry"/g), expr).to.have.length(selectors?.length ?? 0);
    }
  });

  it('describes each panel with a title and a unit of its own', () => {
    expect(new Set(panels.map(({ title }) => title))).to.have.property('size', panels.length);
    for (const { title, description = '', fieldConfig } of panels) {
      expect(description, title).to.match(/^[A-Z].*\.$/);
      expect(fieldConfig?.defaults.unit ?? '', title).not.to.equal('');
    }
  });
});

describe('The Grafana of docker-compose.yml', () => {
  const { grafana } = yaml('docker-compose.yml').services;
  const provisioning = 'provisioning/dashboards/registry-search.yml';
  const sources = 'provisioning/datasources/prometheus.yml';

  it('loads this dashboard and shows it first', () => {
    const folder: string = yaml(`deploy/grafana/${provisioning}`).providers[0].options.path;
    const path = `${folder}/registry-search.json`;
    expect(grafana.volumes).to.have.members([
      ...[provisioning, sources].map((file) => `./deploy/grafana/${file}:/etc/grafana/${file}:ro,z`),
      `./deploy/grafana/registry-search.json:${path}:ro,z`,
    ]);
    expect(grafana.environment).to.include({ GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH: path });
  });

  it('reads from the Prometheus next to it', () => {
    const [{ url }] = yaml(`deploy/grafana/${sources}`).datasources;
    expect(url).to.equal('http://prometheus:9090');
  });

  it('lets visitors only read', () => {
    expect(grafana.environment).to.include({
      GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: 'true',
      GF_AUTH_ANONYMOUS_ORG_ROLE: 'Viewer',
      GF_AUTH_DISABLE_LOGIN_FORM: 'true',
      GF_AUTH_BASIC_ENABLED: 'false',
    });
  });
});
