import { expect } from 'chai';
import { dashboard, panels } from '../support/grafana.js';

/** Whether metrics exist is tested on a real Prometheus, by test/deploy/monitoring. */

describe('The dashboard deploy/grafana/registry-search.json', () => {
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
