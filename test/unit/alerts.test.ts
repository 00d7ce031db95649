import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';

/** What the rules do is tested by test/deploy/monitoring. */

interface Rules {
  groups: { rules: { alert: string; annotations: { runbook_url: string } }[] }[];
}

function read(name: string): string {
  return readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8');
}

describe('deploy/alerts.yml', () => {
  const rules = (parse(read('alerts.yml')) as Rules).groups.flatMap((group) => group.rules);

  it('links each alert to its section of the runbook, which has no others', () => {
    expect(rules.length).to.be.greaterThan(10);
    const sections = [...read('runbook.md').matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    expect(sections).to.have.members(rules.map(({ alert }) => alert));
    for (const { alert, annotations } of rules)
      expect(annotations.runbook_url).to.equal(
        `{{ $externalLabels.runbook_prefix }}runbook.md#${alert.toLowerCase()}`,
      );
  });

  it('finds the prefix of the links in deploy/prometheus.yml', () => {
    const { global } = parse(read('prometheus.yml')) as { global: { external_labels: object } };
    expect(global.external_labels).to.have.property('runbook_prefix').that.matches(/\/$/);
  });
});
